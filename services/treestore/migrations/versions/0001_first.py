"""Conversations, messages, trees and the ledger of runs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SCHEMA = "treestore"
RUNNING = sa.text("status = 'running'")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "conversation",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("title", sa.LargeBinary, nullable=False, comment="sealed"),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("mode_source", sa.Text, nullable=False),
        sa.Column("active_node_id", sa.Text, nullable=False),
        sa.Column("dek", sa.LargeBinary, nullable=False, comment="the data key, wrapped by the master key key_id"),
        sa.Column("key_id", sa.Text, nullable=False),
        _time("created_at"),
        _time("updated_at"),
        sa.CheckConstraint("mode_source IN ('', 'user', 'detected')", name="conversation_mode_source"),
        schema=SCHEMA,
    )
    op.create_index(
        "conversation_by_owner",
        "conversation",
        ["owner", sa.text("updated_at DESC"), sa.text("id DESC")],
        schema=SCHEMA,
    )
    op.create_table(
        "deleted_conversation",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        _time("deleted_at"),
        schema=SCHEMA,
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        _conversation_id(),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("step_failed", sa.Boolean, nullable=False),
        sa.Column(
            "abandoned",
            sa.Boolean,
            nullable=False,
            comment="closed by another than its engine: its heartbeat was stale",
        ),
        sa.Column("message_id", sa.Uuid, nullable=False, comment="the user's message"),
        sa.Column("answer_id", sa.Uuid, comment="the answer's message"),
        sa.Column("parent_node_id", sa.Text, nullable=False),
        sa.Column("usage", JSONB, nullable=False),
        sa.Column("details", sa.LargeBinary, comment="sealed"),
        _time("heartbeat_at"),
        _time("created_at"),
        _time("ended_at", nullable=True),
        sa.CheckConstraint("status IN ('running', 'done', 'partial', 'stopped', 'failed')", name="run_status"),
        schema=SCHEMA,
    )
    op.create_index("run_active", "run", ["conversation_id"], unique=True, postgresql_where=RUNNING, schema=SCHEMA)
    op.create_index("run_by_heartbeat", "run", ["heartbeat_at"], postgresql_where=RUNNING, schema=SCHEMA)
    op.create_index("run_by_conversation", "run", ["conversation_id", "created_at"], schema=SCHEMA)
    op.create_table(
        "message",
        sa.Column("id", sa.Uuid, primary_key=True),
        _conversation_id(),
        sa.Column("run_id", sa.Uuid, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("reply_to", sa.Uuid),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("node_id", sa.Text, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False, comment="sealed"),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        _time("created_at"),
        sa.UniqueConstraint("conversation_id", "position", name="message_position"),
        sa.CheckConstraint("role IN ('user', 'assistant')", name="message_role"),
        schema=SCHEMA,
    )
    op.create_table(
        "thought_tree",
        _conversation_id(primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False, comment="counts the writes"),
        sa.Column("snapshot_version", sa.BigInteger, nullable=False, comment="the version tree_data holds"),
        sa.Column("tree_data", sa.LargeBinary, nullable=False, comment="sealed"),
        sa.Column("delta_bytes", sa.BigInteger, nullable=False, comment="the size of the deltas after the snapshot"),
        sa.Column("schema_used", sa.Text, comment="of the last think; null before the first"),
        sa.Column("node_count", sa.Integer, nullable=False),
        sa.Column("total_tokens", sa.BigInteger, nullable=False),
        sa.Column("duration_ms", sa.BigInteger, nullable=False),
        _time("created_at"),
        _time("updated_at"),
        schema=SCHEMA,
    )
    op.create_table(
        "thought_tree_delta",
        _conversation_id(primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("nodes", sa.LargeBinary, nullable=False, comment="sealed"),
        schema=SCHEMA,
    )
    # Ciphertext doesn't compress: don't try.
    for table, column in (("message", "content"), ("thought_tree", "tree_data"), ("thought_tree_delta", "nodes")):
        op.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER COLUMN {column} SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Remove them."""
    for table in ("thought_tree_delta", "thought_tree", "message", "run", "deleted_conversation", "conversation"):
        op.drop_table(table, schema=SCHEMA)


def _time(name: str, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _conversation_id(primary_key: bool = False) -> sa.Column[object]:
    parent = sa.ForeignKey(f"{SCHEMA}.conversation.id", ondelete="CASCADE")
    return sa.Column("conversation_id", sa.Uuid, parent, primary_key=primary_key, nullable=False)
