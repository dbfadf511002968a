"""How a mode thinks: the configuration of its schema, with the defaults and bounds of the seed (3.2)."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.engine.domain import Alias


class ChainConfig(BaseModel):
    """Options of the chain."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    complexity_threshold: Annotated[int, Field(ge=1, le=5)] = 3
    """A message at least this complex is thought about."""
    max_depth: Annotated[int, Field(ge=1, le=8)] = 4
    """The most steps a question is cut into."""
    enable_critique: bool = True
    """Whether the steps are reviewed before the synthesis."""
    display_template: Literal["drawer"] = "drawer"
    model_override: Alias | None = None
    """The model for every node."""
    steps_model: Alias | None = None
    """The model for every node but the synthesis."""
    synthesis_model: Alias | None = None
    """The model for the synthesis."""
