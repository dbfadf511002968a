"""Text from outside, made safe once at entry, and short forms of it for a line of a list.

Pure functions; standard library only.
"""

import re

_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

# What is looked at to find a first sentence: enough for any limit in use, and a bound on the patterns' work.
_SENTENCE_WINDOW = 10_000
_LINE_WINDOW = 2_000

_RULE_OR_FENCE = re.compile(r"\s*(?:[-*_=]\s*){3,}$|\s*(?:```|~~~)")
_LINE_MARK = re.compile(r"\s*(?:>\s*|#{1,6}\s+|[-*+•]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+)")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)")
_CODE = re.compile(r"(`+)([^`]+)\1")
_DOUBLE_EMPHASIS = re.compile(r"(\*{2,3}|__|~~)(?=\S)(.+?)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*])([*_])(?=[^\s*_])([^*_]+)(?<=\S)\1(?![\w*])")

_SENTENCE_END = re.compile(r"[.!?…]+(?:\s?[»”\")])*(?=\s)")
# A dot after one of these does not end a sentence, in French or in English.
_ABBREVIATIONS = frozenset(
    "mm mme mmes mlle dr me st ste art al cf ex env etc vs no nb pp vol chap fig mr mrs prof".split()  # noqa: SIM905
)
_LAST_WORD = re.compile(r"(\w+)$")


def clean(text: str) -> str:
    """Makes text from outside fit for UTF-8, SQL and protobuf.

    NUL is dropped, a lone surrogate becomes U+FFFD and the two halves of a surrogate pair become their character.
    Everything else stays, newlines and U+2028 included. Cleaning twice changes nothing.
    """
    if not _UNSAFE.search(text):
        return text
    text = text.replace("\x00", "")
    text = _SURROGATE_PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _LONE_SURROGATE.sub("\ufffd", text)


def byte_size(text: str) -> int:
    """The size of the text in UTF-8 bytes; a lone surrogate counts 3, as the U+FFFD that `clean` makes of it."""
    return len(text.encode("utf-8", "surrogatepass"))


def one_line(text: str) -> str:
    """The text on one line: every run of white space, line breaks of any kind included, becomes one space."""
    return " ".join(text.split())


def first_sentence(text: str, limit: int = 120) -> str:
    """The first sentence of a Markdown text, on one line of at most `limit` characters, without Markdown's marks.

    A sentence that is longer is cut after a word and ends in "…". Text without a word gives "".
    """
    for line in text[:_SENTENCE_WINDOW].splitlines():
        if _RULE_OR_FENCE.match(line):
            continue
        plain = one_line(_without_marks(line[:_LINE_WINDOW]))
        if any(character.isalnum() for character in plain):
            return _cut(_up_to_sentence_end(plain), limit)
    return ""


def _without_marks(line: str) -> str:
    while mark := _LINE_MARK.match(line):
        line = line[mark.end() :]
    line = line.rstrip().rstrip("#") if line.rstrip().endswith(" #") else line
    line = _LINK.sub(r"\1", line)
    line = _CODE.sub(r"\2", line)
    line = _DOUBLE_EMPHASIS.sub(r"\2", line)
    return _EMPHASIS.sub(r"\2", line)


def _up_to_sentence_end(line: str) -> str:
    for end in _SENTENCE_END.finditer(line):
        word = _LAST_WORD.search(line, max(end.start() - 20, 0), end.start())
        dotted = end[0] == "." and word is not None
        if dotted and word is not None and (len(word[1]) == 1 or word[1].lower() in _ABBREVIATIONS):
            continue
        return line[: end.end()]
    return line


def _cut(line: str, limit: int) -> str:
    if len(line) <= limit:
        return line
    room = line[: max(limit - 1, 0)]
    # Only go back to the last space when the cut falls inside a word, and only when that leaves something.
    if not line[len(room)].isspace() and " " in room:
        room = room[: room.rindex(" ")]
    return room.rstrip(" ,;:—–-") + "…"
