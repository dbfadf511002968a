"""From an accepted question to its answer: mode, gate, then a think or a classic answer (seed 11.1, 11.11, 11.12)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from kit.prompts import Prompts
from services.engine import context, routing
from services.engine.classic import classic
from services.engine.complexity import assess
from services.engine.domain import Thinking, Turn
from services.engine.events import ModeSwitched, ThinkingCompleted, ThinkingStarted, Trouble
from services.engine.journal import Journal
from services.engine.labels import Icons, Labels
from services.engine.modes.catalog import FALLBACK, Catalog, Mode
from services.engine.ports import Model, Quota, Store
from services.engine.strategies.chain import chain
from services.engine.subscriptions import subscription_of
from services.engine.think import Sight, Think

Strategy = Callable[[Think], Awaitable[None]]
STRATEGIES: Mapping[str, Strategy] = {"chain": chain}


@dataclass(frozen=True)
class Pipeline:
    """What every question goes through."""

    store: Store
    quota: Quota
    model: Model
    catalog: Catalog
    prompts: Prompts
    labels: Mapping[str, Labels]
    icons: Icons
    renew_seconds: float = 10.0
    """How often a lease is renewed while its think runs."""

    async def answer(self, journal: Journal) -> None:
        """Answer one accepted question. Raises RunClosed, and StoreAway when the history can't be read."""
        mode = self._choose_mode(journal)
        sight = await self._sight(journal, mode)
        if self._wants_think(journal, mode):
            async with self._slot(journal) as granted:
                if granted:
                    await self._think(journal, mode, sight)
            if journal.answer is not None:
                return
        journal.schema = ""
        journal.display_template = "default"
        failure = await classic(journal, self.model, sight)
        if failure:
            self._trouble(journal, failure)

    def _choose_mode(self, journal: Journal) -> Mode:
        question, before = journal.question, journal.started
        reason: Literal["requested", "detected"] = "detected"
        if question.mode:
            mode, reason = self.catalog.get(question.mode), "requested"
            journal.mode_chosen_by_user = True
        elif before.mode and before.mode_chosen_by_user:
            mode = self.catalog.get(before.mode)
        else:
            mode = self.catalog.detect(question.message) or self.catalog.get(before.mode or FALLBACK)
        if before.mode and mode.slug != before.mode:
            journal.log.emit(ModeSwitched(before.mode, mode.slug, reason))
        journal.mode = mode.slug
        return mode

    async def _sight(self, journal: Journal, mode: Mode) -> Sight:
        history: list[Turn] = []
        if journal.started.parent_node_id:
            history = await self.store.history(
                journal.started.conversation_id, journal.started.parent_node_id, journal.caller
            )
        return Sight(
            system=self.prompts.render(journal.question.locale, mode.prompt),
            history=context.cut(history, subscription_of(journal.caller.subscription).history_tokens),
            requested=journal.question.model,
            detected=routing.detect(journal.question.message),
        )

    def _wants_think(self, journal: Journal, mode: Mode) -> bool:
        """The gate's first two questions; the slot is asked for last."""
        if journal.question.thinking is Thinking.OFF or mode.config is None:
            return False
        if not mode.may_think(subscription_of(journal.caller.subscription)):
            return False
        journal.complexity = assess(journal.question.message).complexity
        forced = journal.question.thinking is Thinking.ON
        return forced or journal.complexity >= mode.config.complexity_threshold

    @asynccontextmanager
    async def _slot(self, journal: Journal) -> AsyncIterator[bool]:
        """A slot for the think, renewed while it runs and given back whatever ends it. False: there is none."""
        lease = await self.quota.acquire(journal.run_id, journal.caller)
        if not lease.granted:
            journal.degraded = lease.denial
            yield False
            return
        renewal = asyncio.create_task(self._renew(journal))
        try:
            yield True
        finally:
            renewal.cancel()
            await asyncio.shield(self.quota.release(journal.run_id, journal.caller))

    async def _renew(self, journal: Journal) -> None:
        while True:
            await asyncio.sleep(self.renew_seconds)
            await self.quota.renew(journal.run_id, journal.caller)

    async def _think(self, journal: Journal, mode: Mode, sight: Sight) -> None:
        if mode.config is None:
            return
        locale = journal.question.locale
        journal.schema, journal.display_template = mode.schema, mode.display_template
        journal.log.emit(
            ThinkingStarted(mode.schema, mode.slug, mode.name[locale], journal.complexity, mode.display_template)
        )
        began = journal.duration_ms
        think = Think(journal, self.model, self.prompts, self.labels[locale], self.icons, mode.config, sight)
        try:
            await STRATEGIES[mode.schema](think)
        finally:
            journal.log.emit(
                ThinkingCompleted(
                    nodes=tuple(journal.nodes),
                    input_tokens=journal.bill.input_tokens,
                    output_tokens=journal.bill.output_tokens,
                    duration_ms=journal.duration_ms - began,
                    cost_eur=journal.bill.cost_eur,
                    schema=mode.schema,
                    mode=mode.slug,
                    complexity=journal.complexity,
                    display_template=mode.display_template,
                    partial=journal.partial or journal.answer is None,
                )
            )
        if journal.answer is None:
            journal.degraded = "failed"
        elif journal.answer.failure:
            self._trouble(journal, journal.answer.failure)

    def _trouble(self, journal: Journal, failure: str) -> None:
        """Tell the user of an answer that was cut short, or that never began."""
        labels = self.labels[journal.question.locale]
        if journal.answer is not None:
            code, retryable = "interrupted", True
        elif failure == "refused":
            code, retryable = "refused", False
        else:
            code, retryable = "model_unavailable", True
        journal.log.emit(Trouble(code, labels.trouble(code), retryable))
