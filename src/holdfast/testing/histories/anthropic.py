"""Histories in the words of Anthropic's Messages API."""

from __future__ import annotations

from holdfast.testing.histories.contents import PDF_BASE64, PNG_BASE64
from holdfast.testing.histories.wire import Block, Call, Message, Wire

__all__ = ["AnthropicWire"]


class AnthropicWire(Wire):
    """Neighbours of one role are one turn, and no id is used twice."""

    ids_may_repeat = False

    def user(self, text: str) -> list[Message]:
        kind = self._dice.below(10)
        if kind < 3:
            return [self.plain("user", text)]
        content = [self.text(text)]
        if kind == 8:
            content.append(self._dice.pick((self._image, self._document))())
        if kind == 9:
            return [{"role": "user", "content": content}, self.plain("user", self._contents.text())]
        return [{"role": "user", "content": self._cached(content)}]

    def answer(self, text: str, calls: list[Call], signature: str) -> Message:
        content = self._reasoning(signature) if self._dice.chance(25) else []
        if not content and not calls and self._dice.chance(30):
            return self.plain("assistant", text)
        if text:
            content.append(self.text(text))
        content += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in calls]
        return {"role": "assistant", "content": content}

    def results(self, calls: list[Call]) -> list[Message]:
        content = [self._result(call) for call in calls]
        kind = self._dice.below(20)
        if kind == 19:
            content.append(self.text(self._contents.text()))
        if kind == 18 and len(content) > 1:
            return [{"role": "user", "content": [block]} for block in content]
        return [{"role": "user", "content": self._cached(content)}]

    def _result(self, call: Call) -> Block:
        result: Block = {"type": "tool_result", "tool_use_id": call.id}
        content = self._result_content()
        if content is not None:
            result["content"] = content
        if self._dice.chance(12):
            result["is_error"] = True
        return result

    def _result_content(self) -> str | list[Block] | None:
        kind = self._dice.below(20)
        text = self._contents.result_text()
        if kind < 9:
            return text
        if kind < 15:
            return [self.text(text)]
        if kind == 15:
            return [self.text(text), self.text(self._contents.text())]
        if kind == 16:
            return [self.text(text), self._image()]
        if kind == 17:
            return [self._document(), self.text(text)]
        return self._dice.pick((None, "", []))

    def _reasoning(self, signature: str) -> list[Block]:
        thinking = {"type": "thinking", "thinking": self._contents.text(), "signature": signature}
        redacted = {"type": "redacted_thinking", "data": PDF_BASE64}
        return self._dice.pick(([thinking], [thinking], [redacted], [thinking, redacted]))

    def _cached(self, content: list[Block]) -> list[Block]:
        if self._dice.chance(4):
            content[-1]["cache_control"] = {"type": "ephemeral"}
        return content

    def _image(self) -> Block:
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}}

    def _document(self) -> Block:
        source = {"type": "base64", "media_type": "application/pdf", "data": PDF_BASE64}
        return {"type": "document", "source": source, "title": f"report {self._dice.below(9)}"}
