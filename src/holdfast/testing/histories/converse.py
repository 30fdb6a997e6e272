"""Histories in the words of Bedrock's Converse."""

from __future__ import annotations

from holdfast.testing.histories.contents import PDF, PNG
from holdfast.testing.histories.wire import Block, Call, Message, Wire

__all__ = ["ConverseWire"]

_REDACTED = bytes(range(64))


class ConverseWire(Wire):
    """A block is named by its only key, and every content is a list of blocks."""

    def user(self, text: str) -> list[Message]:
        content = [self.text(text)]
        if self._dice.chance(15):
            content.append(self._dice.pick((self._image, self._document))())
        return [{"role": "user", "content": self._cached(content)}]

    def answer(self, text: str, calls: list[Call], signature: str) -> Message:
        content = self._reasoning(signature) if self._dice.chance(25) else []
        if text:
            content.append(self.text(text))
        content += [{"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.input}} for call in calls]
        return {"role": "assistant", "content": content}

    def results(self, calls: list[Call]) -> list[Message]:
        content: list[Block] = [{"toolResult": self._result(call)} for call in calls]
        if self._dice.chance(8):
            content.append(self.text(self._contents.text()))
        return [{"role": "user", "content": self._cached(content)}]

    def plain(self, role: str, text: str) -> Message:
        return {"role": role, "content": [self.text(text)]}

    def text(self, text: str) -> Block:
        return {"text": text}

    def unknown(self) -> Block:
        return {"hologram": {"depth": 3}}

    def _result(self, call: Call) -> Block:
        result: Block = {"toolUseId": call.id, "content": self._result_content()}
        status = self._dice.below(8)
        if status > 5:
            result["status"] = "error" if status == 7 else "success"
        return result

    def _result_content(self) -> list[Block]:
        kind = self._dice.below(20)
        text = self.text(self._contents.result_text())
        if kind < 14:
            return [text]
        if kind < 16:
            return [{"json": {"rows": [self._contents.input()], "text": self._contents.text(), "total": 1}}]
        if kind == 16:
            return [text, self.text(self._contents.text()), {"json": {"exit": 0}}]
        if kind == 17:
            return [text, self._image()]
        if kind == 18:
            return [text, self._document()]
        return self._dice.pick(([], [self.text("")]))

    def _reasoning(self, signature: str) -> list[Block]:
        kind = self._dice.below(4)
        if kind == 3:
            return [{"reasoningContent": {"redactedContent": _REDACTED}}]
        reasoning = {"text": self._contents.text()}
        if kind:
            reasoning["signature"] = signature
        return [{"reasoningContent": {"reasoningText": reasoning}}]

    def _cached(self, content: list[Block]) -> list[Block]:
        return [*content, {"cachePoint": {"type": "default"}}] if self._dice.chance(4) else content

    def _image(self) -> Block:
        return {"image": {"format": "png", "source": {"bytes": PNG}}}

    def _document(self) -> Block:
        name = f"report {self._dice.below(9)}"
        return {"document": {"format": "pdf", "name": name, "source": {"bytes": PDF}}}
