"""Cuts a model's reasoning out of its answer: `<think>…</think>`, `<thinking>`, `<reasoning>`, `[THINK]`.

Blocks may be nested, unclosed (the rest is reasoning) or split between chunks; case doesn't matter. A closing tag that
closes nothing means that everything before it was reasoning (some servers put the opening tag into the prompt).
"""

import re

_TAGS = ("<think>", "</think>", "<thinking>", "</thinking>", "<reasoning>", "</reasoning>", "[think]", "[/think]")
# ASCII: without it, ignoring case would also take "ſ" for "s" and the Kelvin sign for "k".
_TAG = re.compile("|".join(re.escape(tag) for tag in _TAGS), re.IGNORECASE | re.ASCII)
_BEGINNINGS = frozenset(tag[:length] for tag in _TAGS for length in range(1, len(tag)))
_LONGEST_BEGINNING = max(map(len, _BEGINNINGS))


class ReasoningFilter:
    """Passes an answer on piece by piece without its reasoning.

    Holds back only what could be the beginning of a tag. What was passed on before a closing tag without an opening
    one can't be taken back; the tag itself is dropped. White space after a block is dropped where it would open the
    answer or follow white space. Feeding a text whole or in any pieces gives the same answer.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._held = ""
        self._after_block = False
        self._last = "\n"

    def feed(self, text: str) -> str:
        """What may be shown of the answer after this piece of it."""
        if "<" not in text and "[" not in text and not (self._held or self._depth or self._after_block):
            # Nothing of a tag: so it is with nearly every piece of an answer.
            self._last = text[-1:] or self._last
            return text
        text = self._held + text
        kept: list[str] = []
        position = 0
        for tag in _TAG.finditer(text):
            self._keep(text[position : tag.start()], kept)
            self._turn(opens=tag[0][1] != "/")
            position = tag.end()
        rest = text[position:]
        self._held = _beginning_of_tag(rest)
        self._keep(rest[: len(rest) - len(self._held)], kept)
        return "".join(kept)

    def close(self) -> str:
        """What may be shown of what was held back, now that nothing follows."""
        kept: list[str] = []
        self._keep(self._held, kept)
        self._held = ""
        return "".join(kept)

    def _turn(self, *, opens: bool) -> None:
        self._depth = self._depth + 1 if opens else max(self._depth - 1, 0)
        self._after_block = True

    def _keep(self, text: str, kept: list[str]) -> None:
        if self._depth:
            return
        if self._after_block and self._last.isspace():
            text = text.lstrip()
        if text:
            self._after_block = False
            self._last = text[-1]
            kept.append(text)


def without_reasoning(text: str) -> str:
    """A whole answer without its reasoning; a closing tag that closes nothing takes all before it along."""
    depth = 0
    start = 0
    for tag in _TAG.finditer(text):
        opens = tag[0][1] != "/"
        if not opens and depth == 0:
            start = tag.end()
        depth = depth + 1 if opens else max(depth - 1, 0)
    answer = ReasoningFilter()
    shown = answer.feed(text[start:]) + answer.close()
    return shown.lstrip() if start else shown


def _beginning_of_tag(text: str) -> str:
    for length in range(min(len(text), _LONGEST_BEGINNING), 0, -1):
        end = text[-length:]
        if end.isascii() and end.lower() in _BEGINNINGS:
            return end
    return ""
