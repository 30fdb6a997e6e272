"""Histories in the words of OpenAI's Chat Completions."""

from __future__ import annotations

import json

from holdfast.testing.histories.contents import PDF_BASE64, PNG_BASE64
from holdfast.testing.histories.wire import Block, Call, Message, Wire

__all__ = ["OpenAIWire"]


class OpenAIWire(Wire):
    """Instructions are messages, each result is one of its own, and reasoning is not shown."""

    def opening(self) -> list[Message]:
        said: list[Message] = []
        self._dice.repeat(1, lambda: said.append(self._instruction()))
        return said

    def user(self, text: str) -> list[Message]:
        kind = self._dice.below(20)
        message = self.plain("user", text)
        if kind == 17:
            message["name"] = "alice"
        if kind == 18:
            return [self._instruction(), message]
        if kind > 14:
            message["content"] = [self.text(text), self._dice.pick((self._image, self._file))()]
        return [message]

    def answer(self, text: str, calls: list[Call], signature: str) -> Message:
        message: Message = {"role": "assistant", "content": text or None}
        if text and self._dice.chance(5):
            message["content"] = [self.text(text)]
        if calls:
            message["tool_calls"] = [self._call(call) for call in calls]
            if not text and self._dice.chance(30):
                del message["content"]
        elif self._dice.chance(3):
            message |= {"content": None, "refusal": text}
        return message

    def results(self, calls: list[Call]) -> list[Message]:
        results: list[Message] = [
            {"role": "tool", "tool_call_id": call.id, "content": self._result_content()} for call in calls
        ]
        if self._dice.chance(10):
            results.reverse()
        if self._dice.chance(5):
            results += self.user(self._contents.text())
        return results

    def _result_content(self) -> str | list[Block]:
        kind = self._dice.below(20)
        text = self._contents.result_text()
        if kind < 16:
            return text
        if kind == 16:
            return [self.text(text), self.text(self._contents.text())]
        return "" if kind == 19 else f"Error: {text}"

    def _call(self, call: Call) -> Block:
        function = {"name": call.name, "arguments": json.dumps(call.input, ensure_ascii=False)}
        return {"id": call.id, "type": "function", "function": function}

    def _instruction(self) -> Message:
        return self.plain(self._dice.pick(("system", "developer")), self._contents.text())

    def _image(self) -> Block:
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG_BASE64}"}}

    def _file(self) -> Block:
        data = f"data:application/pdf;base64,{PDF_BASE64}"
        return {"type": "file", "file": {"filename": "report.pdf", "file_data": data}}
