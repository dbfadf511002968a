"""The gateways of one stack: a run is followed to its end through any of them."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any, Self

from cli.commands.client import Gateway, NoAnswer, Refusal, StreamCut
from cli.screen.format import number, text
from cli.screen.progress import Event
from kit.ids import new_id

PATIENCE_SECONDS = 60.0
"""How long coming back to a run is tried, since its last event."""
FIRST_PAUSE = 0.2
LAST_PAUSE = 5.0


class Gateways:
    """One stack's gateways, the one to use first in front. `async with` closes their connections."""

    def __init__(self, urls: Sequence[str], token: str | None = None) -> None:
        self._gateways = [Gateway(url, token) for url in urls]
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for gateway in self._gateways:
            await self._opened.enter_async_context(gateway)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    async def follow(
        self, question: dict[str, Any], on_cut: Callable[[], None]
    ) -> AsyncGenerator[tuple[str, Event], None]:
        """Ask, and give each event of the run once, in order, with its JSON as received; the last is `done`.

        When the stream breaks off, `on_cut` is told, and it is taken up again where it was, through the next gateway;
        a question of which nobody knows whether it has arrived is sent again with its key. Raises Failure when it is
        refused or nobody is there; StreamCut when for a minute there is no coming back, or no more to come back to.
        """
        key, run_id, seq = new_id(), "", 0
        clock = asyncio.get_running_loop().time
        cut_at: float | None = None
        pause, nobody = FIRST_PAUSE, 0
        for gateway in itertools.cycle(self._gateways):
            stream = gateway.watch(run_id, seq) if run_id else gateway.ask(question, key)
            try:
                async with aclosing(stream) as events:
                    async for raw, event in events:
                        place = int(number(event.get("seq")))
                        if place <= seq:
                            continue
                        run_id, seq = text(event.get("run_id")) or run_id, place
                        cut_at, pause = None, FIRST_PAUSE
                        yield raw, event
                return
            except NoAnswer:
                nobody += 1
                if not run_id and cut_at is None:
                    # Nobody has seen the question yet.
                    if nobody == len(self._gateways):
                        raise
                    continue
            except Refusal as error:
                if run_id and not error.passing:
                    raise StreamCut from error
                if not run_id and (cut_at is None or not error.passing):
                    raise
            except StreamCut:
                pass
            if cut_at is None:
                cut_at = clock()
                on_cut()
            elif clock() - cut_at > PATIENCE_SECONDS:
                raise StreamCut
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_PAUSE)

    async def stop(self, run_id: str) -> None:
        """Stop a run through the first gateway that takes it. Raises Failure, StreamCut."""
        for gateway in self._gateways[:-1]:
            try:
                await gateway.stop(run_id)
            except (NoAnswer, StreamCut):
                continue
            return
        await self._gateways[-1].stop(run_id)
