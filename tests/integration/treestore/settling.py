"""What the tests of settling share: a think that was begun, what it used, and a clean start."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from lintello.common.v1 import node_pb2, run_pb2
from lintello.treestore.v1 import treestore_pb2 as pb

from tests.integration.treestore.client import Client, node

USAGE = [
    run_pb2.Usage(model="small-1", input_tokens=100, output_tokens=20),
    run_pb2.Usage(model="large-1", output_tokens=5, estimated=True),
]
DETAILS = pb.RunDetails(
    schema="chain",
    mode="recherche",
    complexity=4,
    display_template="canari-gabarit",
    duration_ms=1234,
    degraded="busy",
    cost_eur=0.002,
    node_count=7,
    fallbacks=1,
    retries=3,
)


@pytest.fixture(autouse=True)
async def nothing_unsettled(sql: asyncpg.Connection) -> AsyncIterator[None]:
    """No run of another test is in the way, and none of this one's is left."""
    statement = """WITH gone AS (DELETE FROM treestore.conversation WHERE id IN
                                 (SELECT conversation_id FROM treestore.run WHERE status = 'running'))
                   DELETE FROM treestore.unsettled_run"""
    await sql.execute(statement)
    yield
    await sql.execute(statement)


def step(node_id: str, *parents: str, **fields: Any) -> node_pb2.Node:
    """A node of a think, with what it used."""
    return node(node_id, *parents, **{"model": "small-1", "input_tokens": 10, "output_tokens": 1, **fields})


async def think(client: Client, **fields: Any) -> pb.StartRunResponse:
    """A run with three nodes of two models, that goes on."""
    started = await client.start(**fields)
    await client.append(started.run.run_id, step("n1"))
    await client.append(started.run.run_id, step("n2", "n1", model="large-1", fallback_from="small-1"))
    await client.append(started.run.run_id, step("n3", "n2", input_tokens=5), step("n4", "n3", model="", input_tokens=0,
                                                                                   output_tokens=0))  # fmt: skip
    return started


STORED = [
    run_pb2.Usage(model="small-1", input_tokens=15, output_tokens=2, estimated=True),
    run_pb2.Usage(model="large-1", input_tokens=10, output_tokens=1, estimated=True),
]
"""What the nodes of a think say."""
