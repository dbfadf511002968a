"""A client of one run, as a good one behaves: it reads each event once, in order, and comes back when it is cut."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import httpx

from tests.e2e.client import Event, answer_in, read_events

Until = Callable[[Event], bool]

TRIES_SECONDS = 60.0
"""How long a client goes on trying to get in; a restarted gateway takes less."""
HEARD_SECONDS = 15.0
AWAY = (502, 503, 504)
RETRY_SECONDS = 0.2


class OutOfOrder(AssertionError):
    """An event came twice, or one is missing."""


@dataclass
class Reader:
    """Reads one run through any of these gateways, the next one each time."""

    gateways: Sequence[httpx.AsyncClient]
    run_id: str = ""
    events: list[Event] = field(default_factory=list)
    connections: int = 0
    """How often it had to connect."""
    last_status: int = 0
    """The status of the last answer."""

    @property
    def done(self) -> bool:
        """Whether the run has ended, as far as this client knows."""
        return bool(self.events) and self.events[-1]["type"] == "done"

    @property
    def seq(self) -> int:
        """The number of the last event it has."""
        return int(self.events[-1]["seq"]) if self.events else 0

    @property
    def answer(self) -> str:
        """The answer as far as it has come."""
        return answer_in(self.events)

    async def heard(self, what: Until) -> None:
        """Wait until an event has come, of those another task reads. Raises TimeoutError."""
        async with asyncio.timeout(HEARD_SECONDS):
            while not any(what(event) for event in self.events):
                await asyncio.sleep(0.01)

    async def ask(self, message: str, *, until: Until | None = None, key: str = "", **fields: object) -> None:
        """Ask, under one idempotency key however often it takes; then read to the end, or leave after an event."""
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        await self._insist("POST", "/api/chat/stream", until, headers=headers, json={"message": message, **fields})
        if self.events and not self._satisfied(until):
            await self.come_back(until=until)

    async def come_back(self, *, until: Until | None = None) -> None:
        """Read on where it was, to the end, or leave after an event."""
        while not self._satisfied(until):
            before = self.seq
            await self._insist("GET", f"/api/runs/{self.run_id}/events", until)
            if self.seq == before:
                await asyncio.sleep(RETRY_SECONDS)

    async def open_once(self, until: Until | None = None) -> None:
        """One connection that reads on where it was, however it ends."""
        await self._read("GET", f"/api/runs/{self.run_id}/events", until, {}, None)

    async def _insist(
        self, method: str, path: str, until: Until | None, headers: dict[str, str] | None = None, json: object = None
    ) -> None:
        """Try until one connection was taken by a gateway and has ended. Raises TimeoutError."""
        before = self.seq
        async with asyncio.timeout(TRIES_SECONDS):
            while True:
                try:
                    await self._read(method, path, until, dict(headers or {}), json)
                except httpx.TransportError:
                    pass
                else:
                    if self.last_status not in AWAY:
                        assert self.last_status == 200, f"{method} {path}: {self.last_status}"
                        return
                if self.seq > before:
                    return
                await asyncio.sleep(RETRY_SECONDS)

    async def _read(self, method: str, path: str, until: Until | None, headers: dict[str, str], json: object) -> None:
        http = self.gateways[self.connections % len(self.gateways)]
        self.connections += 1
        if self.seq:
            headers["Last-Event-ID"] = str(self.seq)
        async with http.stream(method, path, headers=headers, json=json) as response:
            self.last_status = response.status_code
            if response.status_code != 200:
                await response.aread()
                return
            async for event in read_events(response):
                self._take(event)
                if until is not None and until(event):
                    return

    def _take(self, event: Event) -> None:
        if self.done or event["seq"] != self.seq + 1:
            raise OutOfOrder(f"event {event['seq']} came after {self.seq}{' and done' if self.done else ''}")
        self.run_id = self.run_id or str(event["run_id"])
        if event["run_id"] != self.run_id:
            raise OutOfOrder("an event of another run")
        self.events.append(event)

    def _satisfied(self, until: Until | None) -> bool:
        return self.done or (until is not None and bool(self.events) and until(self.events[-1]))


def is_type(kind: str) -> Until:
    """Whether an event is of this type."""
    return lambda event: event["type"] == kind


def completed(step: int) -> Until:
    """Whether an event says that this step of a think is over."""
    return lambda event: (event["type"], event.get("step"), event.get("status")) == ("thinking_step", step, "completed")


def started(step: int) -> Until:
    """Whether an event says that this step of a think has begun."""
    return lambda event: (event["type"], event.get("step"), event.get("status")) == ("thinking_step", step, "started")
