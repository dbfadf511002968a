"""What is taken for JSON."""

from typing import Any

import pytest
from starlette.types import Message

from gateway.bodies import CleanRequest
from gateway.problems import Refused


async def read(body: bytes) -> Any:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return await CleanRequest({"type": "http", "method": "POST", "headers": []}, receive).json()


async def test_nul_is_dropped_and_a_lone_surrogate_replaced() -> None:
    assert await read(rb'{"message": "a\u0000b\ud800c"}') == {"message": "ab\ufffdc"}


async def test_a_pair_of_surrogates_is_its_character() -> None:
    assert await read(rb'{"message": "\ud83d\ude00"}') == {"message": "😀"}


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"message": "\xff"}',
        b"\xff\xfe{\x00}\x00",
        b'{"n": NaN}',
        b'{"n": Infinity}',
        b"[" * 200_000,
        b'{"n": ' + b"9" * 5000 + b"}",
        b"",
    ],
)
async def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(Refused) as refusal:
        await read(body)
    assert refusal.value.status_code == 400
