"""The tables of the schema `treestore`. What is sealed says so; everything else is ids, times, modes and counts."""

from pathlib import Path

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    desc,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

SCHEMA = "treestore"
MIGRATIONS = Path(__file__).parent / "migrations"

metadata = MetaData(schema=SCHEMA)


def _time(name: str, nullable: bool = False) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


def _conversation_id(primary_key: bool = False) -> Column[object]:
    parent = ForeignKey("treestore.conversation.id", ondelete="CASCADE")
    return Column("conversation_id", Uuid, parent, primary_key=primary_key, nullable=False)


conversation = Table(
    "conversation",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("title", LargeBinary, nullable=False, comment="sealed"),
    Column("mode", Text, nullable=False),
    Column("mode_source", Text, nullable=False),
    Column("active_node_id", Text, nullable=False),
    Column("dek", LargeBinary, nullable=False, comment="the data key, wrapped by the master key key_id"),
    Column("key_id", Text, nullable=False),
    _time("created_at"),
    _time("updated_at"),
    CheckConstraint("mode_source IN ('', 'user', 'detected')", name="conversation_mode_source"),
)
Index("conversation_by_owner", conversation.c.owner, desc(conversation.c.updated_at), desc(conversation.c.id))

deleted_conversation = Table(
    "deleted_conversation",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("owner", Text, nullable=False),
    _time("deleted_at"),
)

run = Table(
    "run",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("owner", Text, nullable=False),
    _conversation_id(),
    Column("status", Text, nullable=False),
    Column("step_failed", Boolean, nullable=False),
    Column("abandoned", Boolean, nullable=False, comment="closed by another than its engine: its heartbeat was stale"),
    Column("message_id", Uuid, nullable=False, comment="the user's message"),
    Column("answer_id", Uuid, comment="the answer's message"),
    Column("parent_node_id", Text, nullable=False),
    Column("subscription", Text, nullable=False, comment="the owner's when it began"),
    Column("idempotency_key", Text, comment="the user's name for the request; null: none"),
    Column("request_hash", LargeBinary, comment="HMAC of the request's hash; its key comes from the data key"),
    Column("stop_requested", Boolean, nullable=False),
    Column("last_seq", BigInteger, nullable=False, comment="the number of its last event, as far as its engine said"),
    Column("usage", JSONB, nullable=False),
    Column("details", LargeBinary, comment="sealed"),
    _time("heartbeat_at"),
    _time("created_at"),
    _time("ended_at", nullable=True),
    _time("usage_recorded_at", nullable=True),
    UniqueConstraint("owner", "idempotency_key", name="run_idempotency_key"),
    CheckConstraint("status IN ('running', 'done', 'partial', 'stopped', 'failed')", name="run_status"),
)
Index("run_active", run.c.conversation_id, unique=True, postgresql_where=text("status = 'running'"))
Index("run_by_conversation", run.c.conversation_id, run.c.created_at)
Index("run_by_owner", run.c.owner, desc(run.c.created_at), desc(run.c.id))

# The way into the books: a run stands here from its end until it is settled, whether its conversation is still there
# or not. Hence no foreign key, nothing sealed and no text.
unsettled_run = Table(
    "unsettled_run",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("conversation_id", Uuid, nullable=False),
    Column("owner", Text, nullable=False),
    Column("subscription", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("partial", Boolean, nullable=False),
    Column("abandoned", Boolean, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("usage", JSONB, nullable=False),
    Column("details", JSONB, nullable=False, comment="mode, schema, counts, cost and duration"),
    _time("heartbeat_at"),
    _time("created_at"),
    _time("ended_at"),
)
Index("unsettled_run_by_end", unsettled_run.c.ended_at)

message = Table(
    "message",
    metadata,
    Column("id", Uuid, primary_key=True),
    _conversation_id(),
    Column("run_id", Uuid, nullable=False),
    Column("position", Integer, nullable=False),
    Column("reply_to", Uuid),
    Column("role", Text, nullable=False),
    Column("node_id", Text, nullable=False),
    Column("content", LargeBinary, nullable=False, comment="sealed"),
    Column("model", Text, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    _time("created_at"),
    UniqueConstraint("conversation_id", "position", name="message_position"),
    CheckConstraint("role IN ('user', 'assistant')", name="message_role"),
)

thought_tree = Table(
    "thought_tree",
    metadata,
    _conversation_id(primary_key=True),
    Column("version", BigInteger, nullable=False, comment="counts the writes"),
    Column("snapshot_version", BigInteger, nullable=False, comment="the version tree_data holds"),
    Column("tree_data", LargeBinary, nullable=False, comment="sealed"),
    Column("delta_bytes", BigInteger, nullable=False, comment="the size of the deltas after the snapshot"),
    Column("schema_used", Text, comment="of the last think; null before the first"),
    Column("node_count", Integer, nullable=False),
    Column("total_tokens", BigInteger, nullable=False),
    Column("duration_ms", BigInteger, nullable=False),
    _time("created_at"),
    _time("updated_at"),
)

thought_tree_delta = Table(
    "thought_tree_delta",
    metadata,
    _conversation_id(primary_key=True),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("nodes", LargeBinary, nullable=False, comment="sealed"),
)
