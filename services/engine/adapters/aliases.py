"""Which name a provider has for each alias, and what a token costs there."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kit.model import ChatModel, ModelError
from services.engine.domain import ALIASES, Alias, ModelUsage

FILE = Path(__file__).with_name("models.yaml")
ASK_SECONDS = 3.0


@dataclass(frozen=True)
class Price:
    """Euros per million tokens."""

    input: float
    output: float

    def of(self, usage: ModelUsage) -> float:
        """What a call cost, in euros."""
        return (usage.input_tokens * self.input + usage.output_tokens * self.output) / 1_000_000


class Aliases:
    """Names and prices by alias.

    Names that settings give stand. For the others the provider's list is asked once: its usual name if it is listed,
    else the first it lists. A provider that keeps no list gets the usual names.
    """

    def __init__(self, client: ChatModel, given: Mapping[Alias, str]) -> None:
        data: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
        self._client = client
        self._usual: dict[Alias, list[str]] = {alias: data[alias]["names"] for alias in ALIASES}
        self._prices: dict[Alias, Price] = {
            alias: Price(data[alias]["input"], data[alias]["output"]) for alias in ALIASES
        }
        self._given = {alias: name for alias, name in given.items() if name}
        self._names: dict[Alias, str] | None = self._given if len(self._given) == len(ALIASES) else None
        self._lock = asyncio.Lock()

    async def name(self, alias: Alias) -> str:
        """The provider's name for an alias."""
        if self._names is None:
            async with self._lock:
                if self._names is None:
                    self._names = await self._resolve()
        return self._names[alias]

    def price(self, alias: Alias) -> Price:
        """What an alias costs."""
        return self._prices[alias]

    async def _resolve(self) -> dict[Alias, str]:
        listed: list[str] = []
        try:
            async with asyncio.timeout(ASK_SECONDS):
                listed = await self._client.models()
        except (ModelError, TimeoutError):
            pass
        return {alias: self._given.get(alias) or self._pick(alias, listed) for alias in ALIASES}

    def _pick(self, alias: Alias, listed: list[str]) -> str:
        usual = self._usual[alias]
        return next((name for name in usual if name in listed), listed[0] if listed else usual[0])
