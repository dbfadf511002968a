"""The books: one row a run."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SCHEMA = "quota"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "usage_log",
        sa.Column("run_id", sa.Uuid, primary_key=True),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("subscription", sa.Text, nullable=False, comment="the user's when the run began"),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("schema", sa.Text, nullable=False, comment="chain, tree or refine; empty for a classic answer"),
        sa.Column("node_count", sa.Integer, nullable=False),
        sa.Column("usage", JSONB, nullable=False, comment="model -> {input_tokens, output_tokens, estimated}"),
        sa.Column("cost_eur", sa.Double, nullable=False),
        sa.Column("fallbacks", sa.Integer, nullable=False),
        sa.Column("retries", sa.Integer, nullable=False),
        sa.Column("partial", sa.Boolean, nullable=False),
        sa.Column("estimated", sa.Boolean, nullable=False, comment="some of its usage is an estimate"),
        sa.Column("duration_ms", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, comment="when it was recorded"),
        sa.CheckConstraint("status IN ('done', 'partial', 'stopped', 'failed')", name="usage_log_status"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Remove it, with everything that was recorded."""
    op.drop_table("usage_log", schema=SCHEMA)
