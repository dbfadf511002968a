"""What a run needs to be found, stopped and charged by others than its engine."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

SCHEMA = "treestore"


def upgrade() -> None:
    """Add them. Runs that had ended before aren't charged: there were no books yet."""
    # The defaults are for the rows that are there, and for replicas of the version before that still write.
    for column in (
        sa.Column(
            "subscription", sa.Text, nullable=False, server_default=sa.text("''"), comment="the owner's when it began"
        ),
        sa.Column("idempotency_key", sa.Text, comment="the user's name for the request; null: none"),
        sa.Column(
            "request_hash", sa.LargeBinary, comment="HMAC of the request's hash; its key comes from the data key"
        ),
        sa.Column("stop_requested", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column(
            "last_seq",
            sa.BigInteger,
            nullable=False,
            server_default=sa.text("0"),
            comment="the number of its last event, as far as its engine said",
        ),
        sa.Column("usage_recorded_at", sa.DateTime(timezone=True)),
    ):
        op.add_column("run", column, schema=SCHEMA)
    op.create_unique_constraint("run_idempotency_key", "run", ["owner", "idempotency_key"], schema=SCHEMA)
    op.create_index("run_by_owner", "run", ["owner", sa.text("created_at DESC"), sa.text("id DESC")], schema=SCHEMA)
    # Few runs go on at a time, and run_active knows them all; without this index a heartbeat changes no index.
    op.drop_index("run_by_heartbeat", "run", schema=SCHEMA)
    op.create_table(
        "unsettled_run",
        sa.Column("run_id", sa.Uuid, primary_key=True),
        sa.Column("conversation_id", sa.Uuid, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("subscription", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("partial", sa.Boolean, nullable=False),
        sa.Column("abandoned", sa.Boolean, nullable=False),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.Column("usage", JSONB, nullable=False),
        sa.Column("details", JSONB, nullable=False, comment="mode, schema, counts, cost and duration"),
        _time("heartbeat_at"),
        _time("created_at"),
        _time("ended_at"),
        schema=SCHEMA,
    )
    op.create_index("unsettled_run_by_end", "unsettled_run", ["ended_at"], schema=SCHEMA)


def downgrade() -> None:
    """Remove them, with what has not been charged yet."""
    op.drop_table("unsettled_run", schema=SCHEMA)
    op.create_index(
        "run_by_heartbeat", "run", ["heartbeat_at"], postgresql_where=sa.text("status = 'running'"), schema=SCHEMA
    )
    op.drop_index("run_by_owner", "run", schema=SCHEMA)
    op.drop_constraint("run_idempotency_key", "run", schema=SCHEMA)
    added = ("usage_recorded_at", "last_seq", "stop_requested", "request_hash", "idempotency_key", "subscription")
    for column in added:
        op.drop_column("run", column, schema=SCHEMA)


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)
