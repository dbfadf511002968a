"""What the books say of runs: `quota.usage_log`, read by SQL."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Usage:
    """One run in the books."""

    run_id: str
    by_model: dict[str, int]
    """Tokens read and written."""
    partial: bool
    estimated: bool

    @property
    def tokens(self) -> int:
        """Tokens of all models."""
        return sum(self.by_model.values())


def usage_from(row: Mapping[str, Any]) -> Usage:
    """A row of the table."""
    used = json.loads(row["usage"])
    by_model = {model: tokens["input_tokens"] + tokens["output_tokens"] for model, tokens in used.items()}
    return Usage(str(row["run_id"]), by_model, row["partial"], row["estimated"])
