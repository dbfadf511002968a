"""The engine's ports as a test wants them: what is said comes from a script, what is stored can be looked at."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

import grpc

from kit.errors import RemoteError
from kit.identity import Caller
from kit.ids import new_id
from kit.prompts import Prompts
from services.engine.domain import Ending, Finish, ModelUsage, Node, Question, Started, Thinking, Turn
from services.engine.events import Content, Event
from services.engine.labels import FOLDER, Labels, load_icons
from services.engine.modes.catalog import Catalog
from services.engine.pipeline import Pipeline
from services.engine.ports import Lease, ModelCall, ModelFailed, Reply, RunClosed, StoreAway
from services.engine.runs import Run, Runs

CALLER = Caller("alice", "lintello", frozenset(), "gateway")
LABELS = {locale: Labels(locale) for locale in ("fr", "en")}
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


class MemoryStore:
    """Keeps what it is given; can be away, or say that the run is closed."""

    def __init__(self, turns: Sequence[Turn] = (), mode: str = "", chosen: bool = False, parent: str = "") -> None:
        self.turns = list(turns)
        self.mode, self.chosen, self.parent = mode, chosen, parent
        self.nodes: list[Node] = []
        self.finished: list[Finish] = []
        self.away = 0
        """How many of the next writes find nobody."""
        self.closed = False

    async def start_run(self, run_id: str, question: Question, title: str, caller: Caller) -> Started:
        self.title = title
        conversation = question.conversation_id or new_id()
        return Started(run_id, conversation, new_id(), self.parent, self.mode, self.chosen)

    async def heartbeat(self, run_id: str, caller: Caller) -> None:
        self._check()

    async def append(self, run_id: str, nodes: Sequence[Node], caller: Caller) -> None:
        self._check()
        self.nodes += [node for node in nodes if node not in self.nodes]

    async def finish(self, finish: Finish, caller: Caller) -> None:
        self._check()
        self.nodes += [node for node in finish.nodes if node not in self.nodes]
        self.finished.append(finish)

    async def check_run(self, run_id: str, caller: Caller) -> None:
        if run_id not in {finish.run_id for finish in self.finished}:
            raise RemoteError(grpc.StatusCode.NOT_FOUND, "NOT_FOUND", "not found")

    async def history(self, conversation_id: str, node_id: str, caller: Caller) -> list[Turn]:
        return self.turns

    def _check(self) -> None:
        if self.closed:
            raise RunClosed("RUN_CLOSED")
        if self.away:
            self.away -= 1
            raise StoreAway("UNAVAILABLE")


class CountingQuota:
    """Gives slots until it is told not to, and knows which are held."""

    def __init__(self, lease: Lease | None = None) -> None:
        self.lease = lease or Lease(True, "")
        self.held: set[str] = set()
        self.asked = 0

    async def acquire(self, lease_id: str, caller: Caller) -> Lease:
        self.asked += 1
        if self.lease.granted:
            self.held.add(lease_id)
        return self.lease

    async def renew(self, lease_id: str, caller: Caller) -> None:
        self.held.add(lease_id)

    async def release(self, lease_id: str, caller: Caller) -> None:
        self.held.discard(lease_id)


class House:
    """An engine without its sockets."""

    def __init__(
        self, model: ScriptedModel | None = None, store: MemoryStore | None = None, quota: CountingQuota | None = None
    ) -> None:
        self.model = model or ScriptedModel()
        self.store = store or MemoryStore()
        self.quota = quota or CountingQuota()
        pipeline = Pipeline(self.store, self.quota, self.model, Catalog.load(), Prompts(FOLDER), LABELS, load_icons())
        self.runs = Runs(pipeline, self.store, LABELS)

    async def start(self, message: str, caller: Caller = CALLER, **fields: object) -> Run:
        return await self.runs.start(question(message, **fields), caller)

    async def ask(self, message: str, caller: Caller = CALLER, **fields: object) -> list[Event]:
        """Ask, and wait for every event."""
        return await events(await self.start(message, caller, **fields))


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
    """Every event of a run, once its task has ended too."""
    found = [numbered.event async for numbered in run.log.follow()]
    if run.task is not None:
        await asyncio.wait([run.task])
    return found


def answer_in(found: list[Event]) -> str:
    """The whole answer."""
    return "".join(event.content for event in found if isinstance(event, Content))


def ending_of(store: MemoryStore) -> Ending:
    """How the one run of a store ended."""
    (finish,) = store.finished
    return finish.ending
