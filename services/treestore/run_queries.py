"""The ledger's statements: what must be read beside a run so that it can be opened or locked, and how a run ends."""

import uuid
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, RowMapping, Select, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from services.treestore import tables
from services.treestore.books_repository import closing
from services.treestore.records import Conversation, RunStatus
from services.treestore.rows import is_partial, is_stale, open_conversation
from services.treestore.sealing import Keyring
from services.treestore.tree_repository import TREE_HEAD, TreeHead, read_head

_run = tables.run.c


@dataclass(frozen=True)
class Locked:
    """A run with its conversation and where its tree stands, locked until the transaction ends."""

    run_id: uuid.UUID
    status: RunStatus
    abandoned: bool
    message_id: uuid.UUID
    answer_id: uuid.UUID | None
    parent_node_id: str
    conversation: Conversation
    tree: TreeHead


# What stands in a run's way often is built once.

# All three rows are locked, and so all three are read as they are once the lock is there, not as they were before.
# The conversation stands first, as everywhere, so that two writers can't wait for each other.
LOCK = (
    select(
        tables.conversation,
        _run.status,
        _run.abandoned,
        _run.message_id,
        _run.answer_id,
        _run.parent_node_id,
        *TREE_HEAD,
    )
    .join(tables.run, _run.conversation_id == tables.conversation.c.id)
    .join(tables.thought_tree, tables.thought_tree.c.conversation_id == tables.conversation.c.id)
    .where(_run.id == bindparam("run"), _run.owner == bindparam("user"))
    .with_for_update(key_share=True, of=[tables.conversation, tables.run, tables.thought_tree])
)

# The number of a run's last event never goes back: a heartbeat may come late.
_FURTHEST = func.greatest(_run.last_seq, bindparam("seq", type_=_run.last_seq.type))

BEAT = (
    update(tables.run)
    .where(_run.id == bindparam("run"), _run.owner == bindparam("user"), _run.status == RunStatus.RUNNING)
    .values(heartbeat_at=func.now(), last_seq=_FURTHEST)
    .returning(_run.stop_requested)
)

FINISH = closing(
    _run.id == bindparam("run"),
    {
        "status": bindparam("to_status"),
        "step_failed": bindparam("failed"),
        "answer_id": bindparam("answer"),
        "last_seq": _FURTHEST,
        "details": bindparam("sealed"),
    },
)

_ABANDONED = {"status": RunStatus.PARTIAL, "abandoned": True, "details": bindparam("sealed")}
ABANDON = closing((_run.id == bindparam("run")) & (_run.status == RunStatus.RUNNING), _ABANDONED)
ABANDON_STALE = closing((_run.id == bindparam("run")) & is_stale(), _ABANDONED)

ACTIVE = select(
    _run.id, _run.conversation_id, _run.owner, is_stale().label("stale"), _run.heartbeat_at, _run.created_at
)


RUNS: Select[Any] = (
    select(tables.run, is_partial(), tables.message.c.node_id.label("answer_node_id"))
    .select_from(tables.run)
    .outerjoin(tables.message, tables.message.c.id == _run.answer_id)
)
"""Runs with all that open_run needs besides the key."""

RUNS_WITH_CONVERSATION = RUNS.add_columns(tables.conversation).join(
    tables.conversation, tables.conversation.c.id == _run.conversation_id
)
"""Runs, each with its conversation."""

OF_ID = RUNS_WITH_CONVERSATION.where(_run.id == bindparam("run"), _run.owner == bindparam("user"))
OF_KEY = RUNS_WITH_CONVERSATION.where(_run.owner == bindparam("user"), _run.idempotency_key == bindparam("key"))
LOCK_KEY = select(func.pg_advisory_xact_lock(bindparam("number", type_=BigInteger)))
ACTIVE_IN = ACTIVE.where(_run.conversation_id == bindparam("conversation"), _run.status == RunStatus.RUNNING)

ADD = (
    upsert(tables.run)
    .values(
        status=RunStatus.RUNNING,
        step_failed=False,
        abandoned=False,
        stop_requested=False,
        last_seq=0,
        usage=[],
        heartbeat_at=func.now(),
        created_at=func.now(),
    )
    .on_conflict_do_nothing(index_elements=["id"])
    .returning(_run.created_at)
)


def open_locked(row: RowMapping, run_id: uuid.UUID, keyring: Keyring) -> Locked:
    """A locked run from a row of LOCK. Raises DataLoss."""
    return Locked(
        run_id=run_id,
        status=RunStatus(row[_run.status]),
        abandoned=row[_run.abandoned],
        message_id=row[_run.message_id],
        answer_id=row[_run.answer_id],
        parent_node_id=row[_run.parent_node_id],
        conversation=open_conversation(row, keyring),
        tree=read_head(row),
    )
