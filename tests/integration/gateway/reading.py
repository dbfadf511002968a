"""Reading a stream of server-sent events, strictly as the contract writes them."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx


def parse(text: str) -> list[dict[str, Any]]:
    """The events of a whole stream; each is exactly an id line and a data line."""
    events = []
    for block in text.split("\n\n"):
        if not block or block.startswith(":"):
            continue
        first, second = block.split("\n")
        event = json.loads(second.removeprefix("data: "))
        assert first == f"id: {event['seq']}"
        assert second.startswith("data: ")
        events.append(event)
    return events


async def read_events(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """The events one by one, as they come."""
    rest = b""
    async for piece in response.aiter_raw():
        *blocks, rest = (rest + piece).split(b"\n\n")
        for block in blocks:
            for event in parse(block.decode()):
                yield event
