"""Server-sent events out of bytes, as the HTML standard describes them, with what real model servers do to them."""

from kit.model.errors import ModelError, ModelErrorReason

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""No honest piece of an answer is larger; a server that sends more without an end is cut off."""


class EventParser:
    """Gives the data of each event as soon as its last byte is there.

    Lines end at LF or CR LF only, and are split as bytes: U+2028 inside JSON is text, and a character whose bytes come
    in two chunks stays whole. A byte that isn't UTF-8 becomes one U+FFFD. Comments and fields other than `data` are
    ignored. The last event needs no empty line after it.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._first = True

    def feed(self, chunk: bytes) -> list[str]:
        """The data of the events that this chunk completes. Raises ModelError (malformed) on an endless event."""
        events: list[str] = []
        *lines, rest = chunk.split(b"\n")
        if lines and self._line:
            lines[0] = bytes(self._line) + lines[0]
            self._line.clear()
        for line in lines:
            self._end_of_line(line, events)
        self._line += rest
        if self._size + len(self._line) > MAX_EVENT_BYTES:
            raise ModelError(ModelErrorReason.MALFORMED, "the model server sent an event without an end")
        return events

    def close(self) -> list[str]:
        """The data of the event that the end of the stream completes, if there is one."""
        events: list[str] = []
        self._end_of_line(bytes(self._line), events)
        self._line.clear()
        self._dispatch(events)
        return events

    def _end_of_line(self, line: bytes, events: list[str]) -> None:
        if self._first:
            line = line.removeprefix(b"\xef\xbb\xbf")
            self._first = False
        line = line.removesuffix(b"\r")
        if not line:
            self._dispatch(events)
        elif line.startswith(b"data:"):
            self._add(line[5:].removeprefix(b" "))
        elif line == b"data":
            self._add(b"")

    def _add(self, value: bytes) -> None:
        self._data.append(value)
        self._size += len(value) + 1

    def _dispatch(self, events: list[str]) -> None:
        if not self._data:
            return
        data = b"\n".join(self._data)
        self._data.clear()
        self._size = 0
        if data:
            events.append(data.decode("utf-8", "replace"))
