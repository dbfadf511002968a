"""What a strategy may do: ask, answer, and say how many steps it expects. This is its only way out."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from kit.ids import new_id
from kit.prompts import Prompts
from services.engine import context, routing
from services.engine.domain import Alias, Node, Role, Status, Turn
from services.engine.events import ThinkingStep
from services.engine.journal import Journal
from services.engine.labels import Icons, Labels
from services.engine.modes.config import ChainConfig
from services.engine.ports import Model, ModelCall, ModelFailed, Reply
from services.engine.speak import BUDGET, STOPPED, speak

MAX_CALLS = 25
"""Calls of one think, the one kept for the synthesis included."""
THINK_SECONDS = 300.0
SYNTHESIS_SECONDS = 60.0

T = TypeVar("T")


class BudgetSpent(Exception):
    """No call or no time is left but those kept for the synthesis."""


@dataclass(frozen=True)
class Reading(Generic[T]):
    """What was read from an answer: its value, one line for people, and the text that is kept."""

    value: T
    summary: str
    content: str


@dataclass(frozen=True)
class Form(Generic[T]):
    """One kind of step: its role, its prompt, and how its answer is read. An answer `read` can't read is None."""

    role: Role
    read: Callable[[str, Labels], Reading[T] | None]
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Answered(Generic[T]):
    """A step that ended well."""

    node_id: str
    title: str
    value: T
    content: str


@dataclass(frozen=True)
class Failed:
    """A step that failed; its node is pruned and says why."""

    node_id: str
    reason: str


@dataclass(frozen=True)
class Sight:
    """What every call of one question sees before what it is asked."""

    system: str
    history: tuple[Turn, ...]
    requested: Alias | None
    detected: Alias | None


@dataclass(frozen=True)
class _Step:
    number: int
    node_id: str
    role: Role
    parent: str
    title: str
    alias: Alias
    began: float


class Think:
    """One think of one run."""

    def __init__(
        self,
        journal: Journal,
        model: Model,
        prompts: Prompts,
        labels: Labels,
        icons: Icons,
        config: ChainConfig,
        sight: Sight,
    ) -> None:
        self.config = config
        self.start = journal.started.parent_node_id
        """The node the question continues; empty at the root."""
        self._journal = journal
        self._model = model
        self._prompts = prompts
        self._labels = labels
        self._icons = icons
        self._sight = sight
        self._steps = 0
        self._total = 0
        self._calls = 0
        self._until = time.monotonic() + THINK_SECONDS

    def expect(self, total: int) -> None:
        """Say how many steps there will be in all, as far as is known now."""
        self._total = total

    def phrase(self, key: str) -> str:
        """A phrase of the question's locale that stands in a prompt."""
        return self._labels.phrase(key)

    async def ask(self, form: Form[T], parent: str, title: str = "", **values: object) -> Answered[T] | Failed:
        """One step: one call, asked once more when its answer can't be read. Its node is stored before this returns.

        `title` is what people read while it runs. Raises BudgetSpent.
        """
        self._take_call()
        call = self._call(form.role, values, form.schema)
        step = self._begin(form.role, parent, title, call.alias)
        replies: list[Reply] = []
        try:
            async with asyncio.timeout_at(self._loop_time()):
                reading = await self._read(form, call, replies)
        except ModelFailed as error:
            return await self._fail(step, error.reason, replies)
        except TimeoutError:
            await self._fail(step, BUDGET, replies)
            raise BudgetSpent from None
        except asyncio.CancelledError:
            self._end(step, "failed", self._labels.failed(STOPPED), None)
            raise
        if reading is None:
            return await self._fail(step, "malformed", replies)
        node = self._node(step, Status.EXPLORED, reading.summary, reading.content, replies)
        await self._journal.record(node)
        self._end(step, "completed", reading.summary, node)
        return Answered(node.id, title, reading.value, reading.content)

    async def answer(self, role: Role, parent: str, **values: object) -> None:
        """The last step: streams the answer. What it said before it failed is kept."""
        call = self._call(role, values, None)
        step = self._begin(role, parent, "", call.alias)
        left = max(0.0, self._until - time.monotonic()) + SYNTHESIS_SECONDS
        try:
            failure = await speak(self._journal, self._model, call, role, _parents(parent), left, step.node_id)
        except asyncio.CancelledError:
            self._end(step, "failed", self._labels.failed(STOPPED), self._journal.answer)
            raise
        said = self._journal.answer
        if said is None:
            await self._fail(step, failure, [])
        elif failure:
            self._end(step, "failed", self._labels.failed(failure), said)
        else:
            self._end(step, "completed", self._labels.completed(role.value), said)

    async def _read(self, form: Form[T], call: ModelCall, replies: list[Reply]) -> Reading[T] | None:
        for attempt in range(2):
            reply = await self._reply(call, replies)
            reading = form.read(reply.text, self._labels)
            if reading is not None or attempt == 1:
                return reading
            again = (Turn("assistant", reply.text or "…"), Turn("user", self._labels.phrase("ask_again")))
            call = replace(call, turns=(*call.turns, *again))
        return None

    async def _reply(self, call: ModelCall, replies: list[Reply]) -> Reply:
        """The reply to a call. Whatever ends it, what it used is charged and among the replies."""
        used: Reply | None = None
        try:
            used = await self._model.ask(call)
            return used
        except ModelFailed as error:
            used = error.spent
            raise
        except asyncio.CancelledError:
            used = self._model.estimate(call, "")
            raise
        finally:
            if used is not None:
                self._journal.charge(used)
                replies.append(used)

    def _take_call(self) -> None:
        if self._calls >= MAX_CALLS - 1 or time.monotonic() >= self._until:
            raise BudgetSpent
        self._calls += 1

    def _loop_time(self) -> float:
        return asyncio.get_running_loop().time() + max(0.0, self._until - time.monotonic())

    def _call(self, role: Role, values: Mapping[str, object], schema: Mapping[str, Any] | None) -> ModelCall:
        question = self._journal.question
        asked = self._prompts.render(question.locale, role.value, {"question": question.message, **values})
        turns = (*self._sight.history, Turn("user", asked))
        alias = routing.choose(
            role, context.size(self._sight.system, turns), self.config, self._sight.requested, self._sight.detected
        )
        return ModelCall(alias, self._sight.system, turns, schema)

    def _begin(self, role: Role, parent: str, title: str, alias: Alias) -> _Step:
        self._steps += 1
        self._total = max(self._total, self._steps)
        step = _Step(self._steps, new_id(), role, parent, title, alias, time.monotonic())
        self._emit(step, "started", self._labels.started(role, title), self._icons.started[role.value], alias)
        return step

    async def _fail(self, step: _Step, reason: str, replies: list[Reply]) -> Failed:
        self._journal.partial = True
        node = self._node(step, Status.PRUNED, self._labels.failed(reason), "", replies, failure=reason)
        await self._journal.record(node)
        self._end(step, "failed", node.summary, node)
        return Failed(node.id, reason)

    def _node(
        self, step: _Step, status: Status, summary: str, content: str, replies: list[Reply], failure: str = ""
    ) -> Node:
        last = replies[-1] if replies else None
        return Node(
            id=step.node_id,
            parents=_parents(step.parent),
            role=step.role,
            status=status,
            summary=summary,
            content=content,
            model=last.usage.model if last else "",
            run_id=self._journal.run_id,
            input_tokens=sum(reply.usage.input_tokens for reply in replies),
            output_tokens=sum(reply.usage.output_tokens for reply in replies),
            duration_ms=int((time.monotonic() - step.began) * 1000),
            failure=failure,
            fallback_from=last.fallback_from if last else "",
        )

    def _end(self, step: _Step, status: Any, summary: str, node: Node | None) -> None:
        icon = self._icons.completed if status == "completed" else self._icons.failed
        tokens = node.input_tokens + node.output_tokens if node else 0
        model = node.model if node else step.alias
        self._emit(step, status, summary, icon, model, tokens, int((time.monotonic() - step.began) * 1000))

    def _emit(
        self, step: _Step, status: Any, summary: str, icon: str, model: str, tokens: int = 0, duration_ms: int = 0
    ) -> None:
        self._journal.log.emit(
            ThinkingStep(
                step=step.number,
                total=self._total,
                status=status,
                summary=summary,
                icon=icon,
                role=step.role.value,
                node_id=step.node_id,
                parent_id=step.parent,
                branch="",
                model=model,
                tokens=tokens,
                duration_ms=duration_ms,
            )
        )


def _parents(parent: str) -> tuple[str, ...]:
    return (parent,) if parent else ()
