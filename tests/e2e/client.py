"""A user of the gateway, as the end-to-end tests need one."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

HARD = "Compare trois façons de financer une coopérative, avec budget et étapes"

Event = dict[str, Any]


@dataclass(frozen=True)
class User:
    """One user of a running gateway."""

    http: httpx.AsyncClient

    async def ask(self, message: str, **fields: object) -> list[Event]:
        """Ask over SSE, and read to the end."""
        async with self.stream(message, **fields) as events:
            return [event async for event in events]

    @asynccontextmanager
    async def stream(self, message: str, **fields: object) -> AsyncIterator[AsyncIterator[Event]]:
        """Ask over SSE, and read what is wanted; leaving closes the connection."""
        body = {"message": message, **fields}
        async with self.http.stream("POST", "/api/chat/stream", json=body) as response:
            assert response.status_code == 200, (await response.aread()).decode()
            yield read_events(response)

    async def get(self, path: str, **params: str) -> Any:
        """A JSON body that must be there."""
        response = await self.http.get(path, params=params)
        assert response.status_code == 200, response.text
        return response.json()


async def read_events(response: httpx.Response) -> AsyncIterator[Event]:
    """Events of an SSE answer, each checked to be one `id` line and one `data` line."""
    waiting = b""
    async for piece in response.aiter_bytes():
        waiting += piece
        while b"\n\n" in waiting:
            frame, _, waiting = waiting.partition(b"\n\n")
            if frame.startswith(b":"):
                continue
            first, second = frame.split(b"\n")
            event: Event = json.loads(second.removeprefix(b"data: "))
            event["seq"] = int(first.removeprefix(b"id: "))
            yield event


def types(events: list[Event]) -> list[str]:
    """The types in order, repeats folded."""
    names = [str(event["type"]) for event in events]
    return [name for place, name in enumerate(names) if place == 0 or names[place - 1] != name]


def answer_in(events: list[Event]) -> str:
    """The whole answer."""
    return "".join(event["content"] for event in events if event["type"] == "content")


def first(events: list[Event], kind: str) -> Event:
    """The first event of a type."""
    return next(event for event in events if event["type"] == kind)


def bearer(token: str) -> Mapping[str, str]:
    """The header that carries a token."""
    return {"Authorization": f"Bearer {token}"}
