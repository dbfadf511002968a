"""Thought trees in PostgreSQL: one sealed snapshot, and one sealed delta for each append since.

An append costs the same at any size: it writes its own nodes only, and what it has to check against is kept in memory
as an outline. An outline is used only for the version that stands in the locked row, so two replicas can't disagree.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import RowMapping, bindparam, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.treestore import tables
from services.treestore.codec import decode_nodes, encode_nodes
from services.treestore.errors import DataLoss
from services.treestore.outlines import Outlines
from services.treestore.records import Conversation
from services.treestore.sealing import Place
from services.treestore.tree import Node, Outline, Tree, TreeFull, TreeInvalid, total_tokens

# Deltas are folded into the snapshot when there are this many and they have passed a quarter of its size.
FOLD_AFTER = 64
FOLD_SHARE = 4

T = TypeVar("T")

_tree = tables.thought_tree.c
_delta = tables.thought_tree_delta.c

TREE_HEAD = (
    _tree.version,
    _tree.snapshot_version,
    _tree.delta_bytes,
    _tree.node_count,
    func.octet_length(_tree.tree_data).label("snapshot_bytes"),
)

# Built once: they stand in the way of every run and every append.
_CREATE = insert(tables.thought_tree).values(
    version=0,
    snapshot_version=0,
    delta_bytes=0,
    node_count=0,
    total_tokens=0,
    duration_ms=0,
    created_at=func.now(),
    updated_at=func.now(),
)
_HEAD = select(*TREE_HEAD).where(_tree.conversation_id == bindparam("conversation"))
_ordered = (
    select(_delta.version, _delta.nodes)
    .where(_delta.conversation_id == bindparam("conversation"), _delta.version > _tree.snapshot_version)
    .order_by(_delta.version)
    .correlate(tables.thought_tree)
    .subquery()
)
# One statement, hence one moment: between two, an append could fold the deltas.
_READ = select(
    _tree.version,
    _tree.snapshot_version,
    _tree.tree_data,
    select(func.array_agg(_ordered.c.version)).scalar_subquery().label("versions"),
    select(func.array_agg(_ordered.c.nodes)).scalar_subquery().label("deltas"),
).where(_tree.conversation_id == bindparam("conversation"))
_NOTE = (
    update(tables.thought_tree)
    .where(_tree.conversation_id == bindparam("conversation"))
    .values(
        duration_ms=_tree.duration_ms + bindparam("more_ms", type_=_tree.duration_ms.type),
        schema_used=func.coalesce(
            func.nullif(bindparam("schema", type_=_tree.schema_used.type), ""), _tree.schema_used
        ),
    )
)
# A delta or a fold and the tree's row are one statement.
_GROW = (
    update(tables.thought_tree)
    .where(_tree.conversation_id == bindparam("conversation"))
    .values(
        version=bindparam("to_version"),
        node_count=bindparam("count"),
        total_tokens=_tree.total_tokens + bindparam("more_tokens"),
        updated_at=func.now(),
    )
)
_ADD = _GROW.values(delta_bytes=bindparam("size")).add_cte(
    insert(tables.thought_tree_delta)
    .values(conversation_id=bindparam("conversation"), version=bindparam("to_version"), nodes=bindparam("sealed"))
    .cte("added")
)
_FOLD = _GROW.values(delta_bytes=0, snapshot_version=bindparam("to_version"), tree_data=bindparam("snapshot")).add_cte(
    delete(tables.thought_tree_delta).where(_delta.conversation_id == bindparam("conversation")).cte("folded")
)


@dataclass(frozen=True)
class TreeHead:
    """Where a tree stands."""

    version: int
    snapshot_version: int
    snapshot_bytes: int
    delta_bytes: int
    node_count: int


def read_head(row: RowMapping) -> TreeHead:
    """Where a tree stands, from a row with the columns TREE_HEAD."""
    return TreeHead(
        version=row[_tree.version],
        snapshot_version=row[_tree.snapshot_version],
        snapshot_bytes=row["snapshot_bytes"],
        delta_bytes=row[_tree.delta_bytes],
        node_count=row[_tree.node_count],
    )


class TreeRepository:
    """Trees, within one transaction that the caller owns; the conversation is always the owner's own already."""

    def __init__(self, connection: AsyncConnection, outlines: Outlines) -> None:
        self._connection = connection
        self._outlines = outlines
        self.written: tuple[str, int, Outline] | None = None
        """Conversation, version and outline of what this transaction wrote: true once it is committed."""

    async def create(self, conversation: Conversation) -> None:
        """Store an empty tree."""
        sealed = conversation.key.seal(_snapshot_place(conversation, 0), encode_nodes(()))
        await self._connection.execute(_CREATE, {"conversation_id": conversation.id, "tree_data": sealed})
        self.written = (str(conversation.id), 0, Tree().outline)

    async def head(self, conversation: Conversation) -> TreeHead:
        """Where the tree stands. Raises DataLoss when there is none."""
        row = (await self._connection.execute(_HEAD, {"conversation": conversation.id})).mappings().first()
        if row is None:
            raise DataLoss("thought_tree", "conversation_id", str(conversation.id))
        return read_head(row)

    async def read(self, conversation: Conversation) -> tuple[int, Tree]:
        """The version and the whole tree, as of one moment. Raises DataLoss."""
        row = (await self._connection.execute(_READ, {"conversation": conversation.id})).mappings().first()
        if row is None:
            raise DataLoss("thought_tree", "conversation_id", str(conversation.id))
        version, snapshot_version = row[_tree.version], row[_tree.snapshot_version]
        nodes = list(_open(conversation, _snapshot_place(conversation, snapshot_version), row[_tree.tree_data]))
        found = list(zip(row["versions"] or (), row["deltas"] or (), strict=True))
        nodes += _open_deltas(conversation, found, snapshot_version, version)
        return version, _checked(conversation, Tree, nodes)

    async def outline(self, conversation: Conversation, head: TreeHead) -> Outline:
        """What the tree holds at this head, which is locked. Raises DataLoss."""
        known = self._outlines.get(str(conversation.id))
        if known is not None and known[0] == head.version:
            return known[1]
        if known is not None and head.snapshot_version <= known[0] < head.version:
            # Another replica has appended meanwhile: only its deltas are read.
            query = (
                select(_delta.version, _delta.nodes)
                .where(_delta.conversation_id == conversation.id, _delta.version > known[0])
                .order_by(_delta.version)
            )
            found = [(version, sealed) for version, sealed in await self._connection.execute(query)]
            nodes = _open_deltas(conversation, found, known[0], head.version)
            return _checked(conversation, known[1].admit, nodes)[0]
        return (await self.read(conversation))[1].outline

    async def append(self, conversation: Conversation, head: TreeHead, outline: Outline, added: Sequence[Node]) -> int:
        """Store nodes that `outline` has already admitted, after this head, which is locked; the new version.

        Raises DataLoss when deltas have to be folded and don't open.
        """
        version = head.version + 1
        sealed = conversation.key.seal(_delta_place(conversation, version), encode_nodes(added))
        delta_bytes = head.delta_bytes + len(sealed)
        deltas = version - head.snapshot_version
        state = {
            "conversation": conversation.id,
            "to_version": version,
            "count": len(outline),
            "more_tokens": total_tokens(added),
        }
        if deltas >= FOLD_AFTER and delta_bytes * FOLD_SHARE >= head.snapshot_bytes:
            _, tree = await self.read(conversation)
            whole = encode_nodes((*tree.nodes, *added))
            snapshot = conversation.key.seal(_snapshot_place(conversation, version), whole)
            await self._connection.execute(_FOLD, {**state, "snapshot": snapshot})
        else:
            await self._connection.execute(_ADD, {**state, "sealed": sealed, "size": delta_bytes})
        self.written = (str(conversation.id), version, outline)
        return version

    async def note_run(self, conversation: Conversation, schema: str, duration_ms: int) -> None:
        """Note on the tree what a run used and took."""
        state = {"conversation": conversation.id, "more_ms": duration_ms, "schema": schema}
        await self._connection.execute(_NOTE, state)


def _snapshot_place(conversation: Conversation, version: int) -> Place:
    return Place("thought_tree", "tree_data", str(conversation.id), conversation.owner, version)


def _delta_place(conversation: Conversation, version: int) -> Place:
    return Place("thought_tree_delta", "nodes", str(conversation.id), conversation.owner, version)


def _lost(place: Place) -> DataLoss:
    return DataLoss(place.table, place.column, place.row)


def _open(conversation: Conversation, place: Place, sealed: bytes) -> tuple[Node, ...]:
    try:
        return decode_nodes(conversation.key.open(place, sealed))
    except ValueError:
        raise _lost(place) from None


def _open_deltas(conversation: Conversation, found: Sequence[tuple[int, bytes]], after: int, until: int) -> list[Node]:
    """The nodes of all deltas after one version until another; a missing one is a loss, not a smaller tree."""
    if [version for version, _ in found] != list(range(after + 1, until + 1)):
        raise _lost(_delta_place(conversation, until))
    return [
        node for version, sealed in found for node in _open(conversation, _delta_place(conversation, version), sealed)
    ]


def _checked(conversation: Conversation, check: Callable[[Sequence[Node]], T], nodes: Sequence[Node]) -> T:
    try:
        return check(nodes)
    except (TreeInvalid, TreeFull):
        raise _lost(_snapshot_place(conversation, 0)) from None
