"""Shapes of what comes in, checked, and of what goes out, for the OpenAPI document."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.languages import Locale

ID_CHARACTERS = 200


class Incoming(BaseModel):
    """A body: a field that isn't known is refused by its name."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class NewConversation(Incoming):
    """A conversation to start."""

    title: str = Field("", max_length=200)
    mode: str | None = Field(None, max_length=ID_CHARACTERS)


class ConversationChange(Incoming):
    """What to change; what is absent stays as it is."""

    title: str | None = Field(None, min_length=1, max_length=200)
    mode: str | None = Field(None, max_length=ID_CHARACTERS, description="null: detect it again.")


class TreeRun(BaseModel):
    """What a tree says of one of its runs."""

    schema_: str | None = Field(alias="schema")
    mode: str | None
    complexity: int | None
    display_template: str | None
    partial: bool


class Node(BaseModel):
    """A step of thought. `children` only in the nested form; `failure` and `fallback_from` only where they apply."""

    id: str
    role: Literal["decompose", "execute", "evaluate", "critique", "refine", "synthesize", "merge", "conversation"]
    branch: str | None
    summary: str
    content: str
    score: float | None = Field(ge=0, le=1)
    status: Literal["exploring", "explored", "selected", "pruned", "merged"]
    tokens: int
    input_tokens: int
    output_tokens: int
    model: str | None
    message_id: str | None
    run_id: str
    duration_ms: int
    parents: list[str]
    children: list["Node"] = []
    failure: str = ""
    fallback_from: str = ""


class TreeData(BaseModel):
    """Nodes and the runs that made them."""

    format: int
    schema_: Literal["chain", "tree", "refine"] | None = Field(alias="schema")
    mode: str | None
    complexity: int | None
    nodes: list[Node]
    runs: dict[str, TreeRun]


class Tree(BaseModel):
    """A conversation's thought tree."""

    tree_data: TreeData
    active_node_id: str | None
    version: int


class Thinking(BaseModel):
    """What a run thought."""

    schema_: Literal["chain", "tree", "refine"] | None = Field(alias="schema")
    tree_data: TreeData
    tokens_used: int
    duration_ms: int
    display_template: str | None
    partial: bool


class Conversation(BaseModel):
    """A conversation of the list."""

    id: str
    title: str
    mode: str | None
    mode_source: Literal["user", "detected"] | None
    active_node_id: str | None
    created_at: str
    updated_at: str


class Message(BaseModel):
    """One turn of a conversation."""

    id: str
    role: Literal["user", "assistant"]
    content: str
    run_id: str | None
    node_id: str | None
    reply_to: str | None
    model: str | None
    tokens: int
    partial: bool
    created_at: str
    thinking: Thinking | None
    sources: list[dict[str, Any]]


class Mode(BaseModel):
    """A way to ask."""

    slug: str
    name: str
    icon: str
    thinking_schema: Literal["chain", "tree", "refine"] | None
    thinking_config: dict[str, Any] | None
    display_template: str | None
    discovery: bool
    enabled: bool
    may_think: bool


class Conversations(BaseModel):
    """A page of conversations."""

    items: list[Conversation]
    next_cursor: str | None


class Messages(BaseModel):
    """A page of messages, the oldest in front."""

    items: list[Message]
    next_cursor: str | None


class Modes(BaseModel):
    """The modes, in the order in which they are shown."""

    items: list[Mode]
    next_cursor: str | None


class Me(BaseModel):
    """Who asks."""

    user: str
    subscription: str
    roles: list[str]
    locale: Locale
    trial_model: bool = Field(description="True when answers come from the trial model.")


class FieldError(BaseModel):
    """What is wrong with a field."""

    field: str
    message: str


class Problem(BaseModel):
    """A refusal (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str | None
    reason: str
    errors: list[FieldError]
    run_id: str = Field("", description="Only where a run had begun: its events can still be read.")
