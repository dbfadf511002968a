"""Server-sent events out of bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.model.errors import ModelError
from kit.model.sse import MAX_EVENT_BYTES, EventParser


def events_of(*chunks: bytes) -> list[str]:
    parser = EventParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()


@given(st.lists(st.sampled_from([b"data: ", b"\n", b"\r\n", b"\n\n", b"\xe2\x82", b"\xac", b"\xff", b":", b"x"])))
def test_any_split_gives_the_same_events(parts: list[bytes]) -> None:
    whole = b"".join(parts)
    assert events_of(*[bytes([byte]) for byte in whole]) == events_of(whole)


@given(st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1)))
def test_every_text_comes_through(texts: list[str]) -> None:
    assert events_of(*[f"data: {text}\n\n".encode() for text in texts]) == texts


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data:a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
        (b": bonjour\n\ndata: a\n: encore\n\n", ["a"]),
        (b"event: x\nid: 7\nretry: 1\ndata: a\n\n", ["a"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b"data: a\n\ndata: b", ["a", "b"]),
        (b"data: a\n\ndata: b\r", ["a", "b"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        ("data: a\u2028b\x85c\n\n".encode(), ["a\u2028b\x85c"]),
        (b"data: a\xffb\n\n", ["a\ufffdb"]),
        (b"data:\n\n\n\ndata: \n\n", []),
        (b'{"error": 1}', []),
    ],
)
def test_a_stream_is_read(stream: bytes, events: list[str]) -> None:
    assert events_of(stream) == events


def test_an_event_is_there_with_its_last_byte() -> None:
    parser = EventParser()
    assert parser.feed(b"data: a\n") == []
    assert parser.feed(b"\n") == ["a"]


@pytest.mark.parametrize("piece", [b"x" * 65536, b"data: " + b"x" * 65536 + b"\n"])
def test_an_endless_event_is_cut_off(piece: bytes) -> None:
    with pytest.raises(ModelError):
        events_of(*[piece] * (MAX_EVENT_BYTES // 65536 + 1))
