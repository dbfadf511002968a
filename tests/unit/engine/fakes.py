"""The engine's ports as a test wants them: what is said comes from a script, what is stored can be looked at."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

from prometheus_client import CollectorRegistry

from kit.identity import Caller
from kit.prompts import Prompts
from services.engine.domain import Ending, ModelUsage, Question, Thinking
from services.engine.events import Content, Done, Event, Numbered
from services.engine.labels import FOLDER, Labels, load_icons
from services.engine.metrics import Metrics
from services.engine.modes.catalog import Catalog
from services.engine.pipeline import Pipeline
from services.engine.ports import Lease, ModelCall, ModelFailed, QuotaAway, Reply, RunUsage
from services.engine.run import Run
from services.engine.runs import Runs
from services.engine.watch import Watch
from tests.unit.engine.stores import MemoryReplay, MemoryStops, MemoryStore

CALLER = Caller("alice", "lintello", frozenset(), "gateway")
LABELS = {locale: Labels(locale) for locale in ("fr", "en")}
FREE = Caller("bob", "gratuit", frozenset(), "gateway")
HARD = "Compare trois façons de financer une coopérative, avec budget et étapes"
STEPS = '{"steps": [{"title": "Lister", "goal": "a"}, {"title": "Chiffrer", "goal": "b"}]}'
WORK = "Résumé du travail.\n\nLe travail lui-même, en détail."
SATISFIED = '{"satisfied": true, "summary": "Tout se tient", "weaknesses": []}'

Script = Callable[[str, ModelCall], str | ModelFailed]


def role_of(call: ModelCall) -> str:
    """Which step a call is, by the tags of its prompt."""
    asked = call.turns[-1].content
    if "<critique>" in asked:
        return "synthesize"
    if "<step>" in asked:
        return "execute"
    if "<previous>" in asked:
        return "critique"
    return "decompose" if "<question>" in asked else "conversation"


def good(role: str, call: ModelCall) -> str | ModelFailed:
    """A model that does what it is asked."""
    return {"decompose": STEPS, "execute": WORK, "critique": SATISFIED}.get(role, "La réponse est là. Elle suffit.")


class ScriptedModel:
    """Answers by a script; streams its answer in pieces of eight characters."""

    def __init__(self, script: Script = good, break_after: int | None = None, hang: str = "") -> None:
        self.script = script
        self.break_after = break_after
        self.hang = hang
        """The role whose call never answers."""
        self.calls: list[tuple[str, ModelCall]] = []
        self.closed = 0
        self.hanging = asyncio.Event()

    async def ask(self, call: ModelCall) -> Reply:
        await self._arrive(call)
        return self._reply(call, self._said(call))

    async def stream(self, call: ModelCall) -> AsyncGenerator[str | Reply, None]:
        try:
            await self._arrive(call)
            text = self._said(call)
            for place in range(0, len(text), 8):
                if self.break_after is not None and place >= self.break_after:
                    raise ModelFailed("interrupted", True)
                yield text[place : place + 8]
                await asyncio.sleep(0)
            if self.hang == "end":
                self.hanging.set()
                await asyncio.Event().wait()
            yield self._reply(call, text)
        finally:
            self.closed += 1

    def estimate(self, call: ModelCall, text: str) -> Reply:
        return Reply(text, ModelUsage("estimate", 7, 3, True), 0.0)

    async def _arrive(self, call: ModelCall) -> None:
        self.calls.append((role_of(call), call))
        if role_of(call) == self.hang:
            self.hanging.set()
            await asyncio.Event().wait()

    def _said(self, call: ModelCall) -> str:
        said = self.script(role_of(call), call)
        if isinstance(said, ModelFailed):
            raise said
        return said

    def _reply(self, call: ModelCall, text: str) -> Reply:
        return Reply(text, ModelUsage(f"model-{call.alias}", 10, 5, False), 0.001)


class CountingQuota:
    """Gives slots until it is told not to, and knows which are held."""

    def __init__(self, lease: Lease | None = None) -> None:
        self.lease = lease or Lease(True, "")
        self.held: set[str] = set()
        self.asked = 0
        self.books: dict[str, RunUsage] = {}
        self.away = False

    async def acquire(self, lease_id: str, caller: Caller) -> Lease:
        self.asked += 1
        if self.lease.granted:
            self.held.add(lease_id)
        return self.lease

    async def renew(self, lease_id: str, caller: Caller) -> None:
        self.held.add(lease_id)

    async def release(self, lease_id: str, caller: Caller) -> None:
        self.held.discard(lease_id)

    async def record(self, usage: RunUsage, caller: Caller) -> None:
        if self.away:
            raise QuotaAway("UNAVAILABLE")
        self.books.setdefault(usage.run_id, usage)


class House:
    """One process of the engine without its sockets."""

    def __init__(
        self,
        model: ScriptedModel | None = None,
        store: MemoryStore | None = None,
        quota: CountingQuota | None = None,
        replay: MemoryReplay | None = None,
        stops: MemoryStops | None = None,
    ) -> None:
        self.model = model or ScriptedModel()
        self.store = store or MemoryStore()
        self.quota = quota or CountingQuota()
        self.replay = replay or MemoryReplay()
        self.stops = stops or MemoryStops()
        self.registry = CollectorRegistry()
        self.metrics = Metrics(self.registry)
        pipeline = Pipeline(self.store, self.quota, self.model, Catalog.load(), Prompts(FOLDER), LABELS, load_icons())
        self.runs = Runs(pipeline, self.replay, self.stops, LABELS, self.metrics)
        self.watch = Watch(self.runs, self.store, self.replay, LABELS["fr"])

    def beside(self) -> "House":
        """Another process of the same engine."""
        return House(self.model, self.store, self.quota, MemoryReplay(self.replay.server), self.stops)

    async def start(self, message: str, caller: Caller = CALLER, **fields: object) -> Run:
        run = await self.runs.start(question(message, **fields), caller, lasting=True)
        assert isinstance(run, Run)
        return run

    async def ask(self, message: str, caller: Caller = CALLER, **fields: object) -> list[Event]:
        """Ask, and wait for every event."""
        return await events(await self.start(message, caller, **fields))

    async def read(self, run_id: str, after: int = 0, caller: Caller = CALLER) -> list[Numbered]:
        """Watch a run to its end."""
        return [event async for event in self.watch.events(run_id, after, caller)]


def question(message: str, **fields: object) -> Question:
    """A question with the defaults of the wire."""
    given: dict[str, object] = {
        "message": message,
        "conversation_id": "",
        "parent_node_id": None,
        "mode": "",
        "thinking": Thinking.AUTO,
        "model": None,
        "locale": "fr",
    }
    return Question(**{**given, **fields})  # type: ignore[arg-type]


async def events(run: Run) -> list[Event]:
    """Every event of a run, once it is over in every respect."""
    found = [numbered.event async for numbered in run.log.follow()]
    await over(run)
    return found


async def over(run: Run) -> None:
    """Wait until a run has ended, is in the books and in the replay log."""
    assert run.answering is not None
    assert run.recording is not None
    await asyncio.wait([run.answering, run.recording])


async def hanging(house: House) -> Run:
    """A run that has spoken and doesn't come to its end."""
    run = await house.start("Bonjour")
    await house.model.hanging.wait()
    await asyncio.sleep(0.1)
    return run


async def killed(house: House, run: Run) -> None:
    """Its process is gone: nothing of it is heard or written any more."""
    house.runs.forget(run.run_id)
    house.store.entries[run.run_id].record = replace(house.store.entries[run.run_id].record, partial=True)
    assert run.recording is not None
    run.recording.cancel()


def answer_in(found: list[Event]) -> str:
    """The whole answer."""
    return "".join(event.content for event in found if isinstance(event, Content))


def done(found: list[Event]) -> Done:
    """The last event."""
    last = found[-1]
    assert isinstance(last, Done)
    return last


def ending_of(store: MemoryStore) -> Ending:
    """How the one run of a store ended."""
    (finish,) = store.finished
    return finish.ending
