"""Word of runs that shall end, from the replica that was told to the one that runs them: a Redis message to all."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from services.engine.adapters.redis_server import ANSWER_SECONDS, AWAY, RedisAway, RedisServer

CHANNEL = "lintello:stops"
SILENCE_SECONDS = 5.0
"""After so much silence the server is asked whether it is there."""
AGAIN_SECONDS = 0.2


class RedisStops:
    """Messages through one Redis server (port Stops)."""

    def __init__(self, redis_url: str) -> None:
        """Connects when it is first asked, so that the order of starts doesn't matter."""
        self._server = RedisServer(redis_url)

    async def send(self, run_id: str) -> None:
        """Tell every replica that a run shall end; doesn't raise when the server is away."""
        try:
            await self._server.ask(lambda redis: redis.publish(CHANNEL, run_id))
        except RedisAway:
            return

    async def listen(self) -> AsyncGenerator[str, None]:
        """The ids of runs that shall end, as they come; goes on by itself after the server was away.

        Iterate it within `contextlib.aclosing`. What is sent while the server is away is lost.
        """
        while True:
            try:
                async with aclosing(self._hear()) as heard:
                    async for run_id in heard:
                        yield run_id
            except AWAY:
                await asyncio.sleep(AGAIN_SECONDS)

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()

    async def _hear(self) -> AsyncGenerator[str, None]:
        """What one connection brings until it breaks."""
        async with self._server.redis.pubsub() as messages:
            async with asyncio.timeout(ANSWER_SECONDS):
                await messages.subscribe(CHANNEL)
            asked = False
            while True:
                message = await messages.get_message(timeout=ANSWER_SECONDS if asked else SILENCE_SECONDS)
                if message is None and asked:
                    raise TimeoutError
                asked = message is None
                if message is None:
                    await messages.ping()
                elif message["type"] == "message":
                    yield message["data"].decode("utf-8", "replace")
