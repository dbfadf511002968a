"""Alembic's entry: everything is in kit.database."""

import asyncio

from alembic import context

from kit.database import run_migrations

asyncio.run(run_migrations(context.config, context))
