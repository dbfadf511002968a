"""The soak's clients: people who ask, read, lose their connection, come back, press stop, and press twice."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

import httpx

from tests.e2e.client import HARD
from tests.faults.reader import RETRY_SECONDS, TRIES_SECONDS, OutOfOrder, Reader, Until, is_type
from tests.faults.site import Site

THINKING_SHARE = 0.6
CONTINUES_SHARE = 0.4
LEFT_SECONDS = 5.0
"""The longest a client stays away before it comes back."""


def marker() -> str:
    """A word that tells a question from all others, in the model's ledger too."""
    return f"repère{uuid.uuid4().hex}"


@dataclass
class Question:
    """One question and everybody who reads its run."""

    marker: str
    text: str
    fields: dict[str, object]
    key: str = field(default_factory=lambda: str(uuid.uuid4()))
    readers: list[Reader] = field(default_factory=list)
    kind: str = ""
    stopped: bool = False
    problem: str = ""
    """What its client ran into that it should not have."""

    @property
    def run_id(self) -> str:
        """Its run, as its first reader knows it."""
        return self.readers[0].run_id if self.readers else ""

    @property
    def conversation_id(self) -> str:
        """Its conversation, as its first reader knows it."""
        events = self.readers[0].events if self.readers else []
        return next((str(event["conversation_id"]) for event in events if "conversation_id" in event), "")


class Clients:
    """Some clients, each of which asks one question after the other."""

    def __init__(self, site: Site, random: Random, count: int) -> None:
        self._site = site
        self._random = random
        self._count = count
        self.questions: list[Question] = []

    async def run(self, until: float) -> None:
        """Ask until this time (of `time.monotonic()`), then read what has been begun to its end."""
        await asyncio.gather(*(self._client(until) for _ in range(self._count)))

    async def _client(self, until: float) -> None:
        conversation = ""
        while time.monotonic() < until:
            question = self._question(conversation)
            self.questions.append(question)
            behave = self._random.choice(BEHAVIOURS)
            question.kind = behave.__name__
            try:
                await behave(self, question)
            except (OutOfOrder, AssertionError, TimeoutError, httpx.HTTPError) as error:
                question.problem = f"{type(error).__name__}: {error}"
            # The next question can continue this conversation only when nothing of it goes on.
            ended = bool(question.readers) and question.readers[0].done
            continues = ended and self._random.random() < CONTINUES_SHARE
            conversation = question.conversation_id if continues else ""
            await asyncio.sleep(self._random.uniform(0, 0.3))

    def _question(self, conversation: str) -> Question:
        word = marker()
        fields: dict[str, object] = {"conversation_id": conversation} if conversation else {}
        if self._random.random() < THINKING_SHARE:
            return Question(word, f"{HARD} ({word})", {**fields, "mode": "recherche"})
        return Question(word, f"Bonjour ({word})", {**fields, "thinking": "off"})

    def reader(self, question: Question, run_id: str = "") -> Reader:
        """One more reader of a question's run, beginning at any gateway."""
        reader = self._site.reader(run_id, gateway=self._random.randrange(len(self._site.gateways)))
        question.readers.append(reader)
        return reader

    async def read_on(self, question: Question) -> None:
        """Ask, and stay to the end."""
        await ask(self.reader(question), question)

    async def leave_and_return(self, question: Question) -> None:
        """Ask, leave after some events, come back; again and again."""
        reader = self.reader(question)
        left = self._random.randint(1, 6)
        await ask(reader, question, lambda event: event["seq"] >= left)
        for _ in range(self._random.randint(0, 3)):
            await asyncio.sleep(self._random.uniform(0, LEFT_SECONDS))
            enough = reader.seq + self._random.randint(1, 20)
            await reader.come_back(until=lambda event, enough=enough: event["seq"] >= enough)  # type: ignore[misc]
        await reader.come_back()

    async def leave_for_good(self, question: Question) -> None:
        """Ask, and go; somebody else looks at the run when all is over."""
        await ask(self.reader(question), question, is_type("run_started"))

    async def stop(self, question: Question) -> None:
        """Ask, and press stop after a while, at any gateway."""
        reader = self.reader(question)
        await ask(reader, question, is_type("run_started"))
        coming = asyncio.ensure_future(reader.come_back())
        await asyncio.sleep(self._random.uniform(0, 3))
        question.stopped = True
        await self._insist(lambda http: http.delete(f"/api/runs/{reader.run_id}"), 204)
        await coming

    async def press_twice(self, question: Question) -> None:
        """Ask twice with one key, at one moment."""
        twins = [self.reader(question) for _ in range(2)]
        await asyncio.gather(*(ask(twin, question) for twin in twins))

    async def start_and_watch(self, question: Question) -> None:
        """Start a run without a stream, and read it from two places."""
        body, headers = {"message": question.text, **question.fields}, {"Idempotency-Key": question.key}
        begun = await self._insist(lambda http: http.post("/api/runs", json=body, headers=headers), 202)
        readers = [self.reader(question, str(begun.json()["run_id"])) for _ in range(2)]
        await asyncio.gather(*(reader.come_back() for reader in readers))

    async def _insist(
        self, send: Callable[[httpx.AsyncClient], Awaitable[httpx.Response]], status: int
    ) -> httpx.Response:
        async with asyncio.timeout(TRIES_SECONDS):
            while True:
                try:
                    answer = await send(self._random.choice(self._site.gateways))
                except httpx.TransportError:
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                if answer.status_code < 500:
                    assert answer.status_code == status, f"{answer.request.method}: {answer.status_code}"
                    return answer
                await asyncio.sleep(RETRY_SECONDS)


async def ask(reader: Reader, question: Question, until: Until | None = None) -> None:
    """Ask a question under its key; read to the end, or leave after an event."""
    await reader.ask(question.text, until=until, key=question.key, **question.fields)


BEHAVIOURS = (
    Clients.read_on,
    Clients.leave_and_return,
    Clients.leave_for_good,
    Clients.stop,
    Clients.press_twice,
    Clients.start_and_watch,
)
