"""The tables of the schema `quota`. Names of users and models, modes and counts; nothing that anybody wrote."""

from pathlib import Path

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    Integer,
    MetaData,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

SCHEMA = "quota"
MIGRATIONS = Path(__file__).parent / "migrations"

metadata = MetaData(schema=SCHEMA)

usage_log = Table(
    "usage_log",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("user", Text, nullable=False),
    Column("subscription", Text, nullable=False, comment="the user's when the run began"),
    Column("status", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("schema", Text, nullable=False, comment="chain, tree or refine; empty for a classic answer"),
    Column("node_count", Integer, nullable=False),
    Column("usage", JSONB, nullable=False, comment="model -> {input_tokens, output_tokens, estimated}"),
    Column("cost_eur", Double, nullable=False),
    Column("fallbacks", Integer, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("partial", Boolean, nullable=False),
    Column("estimated", Boolean, nullable=False, comment="some of its usage is an estimate"),
    Column("duration_ms", BigInteger, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("at", DateTime(timezone=True), nullable=False, comment="when it was recorded"),
    CheckConstraint("status IN ('done', 'partial', 'stopped', 'failed')", name="usage_log_status"),
)
