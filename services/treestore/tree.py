"""The thought tree, pure: what a node is, which nodes a tree takes, and who descends from whom.

Nodes are flat and name their parents; children are derived. Nodes stand in the order they were added, and a parent is
always there before its child: that order is topological, and it leaves no room for a cycle. Nothing here recurses, so
depth is bounded by the number of nodes only. Standard library only.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

MAX_NODES = 5_000
MAX_BYTES = 16 * 1024 * 1024
MAX_ID = 50

# What one more run may need: 25 calls of a strategy and a classic answer, with what they write.
ROOM_NODES = 64
ROOM_BYTES = 1024 * 1024

# What a node takes on the wire besides its texts, generously.
_OVERHEAD_BYTES = 128


class TreeInvalid(Exception):
    """The nodes would break a rule of the tree; the text says which rule and quotes nothing."""


class TreeFull(Exception):
    """The tree has reached its limit of nodes or bytes."""

    def __init__(self) -> None:
        super().__init__(f"the tree has reached {MAX_NODES} nodes or 16 MiB; start a new conversation")


class Role(StrEnum):
    """What a node did."""

    DECOMPOSE = "decompose"
    EXECUTE = "execute"
    EVALUATE = "evaluate"
    CRITIQUE = "critique"
    REFINE = "refine"
    SYNTHESIZE = "synthesize"
    MERGE = "merge"
    CONVERSATION = "conversation"


class Status(StrEnum):
    """What became of a node. One still being explored isn't stored, so there is no name for it here."""

    EXPLORED = "explored"
    SELECTED = "selected"
    PRUNED = "pruned"
    MERGED = "merged"


@dataclass(frozen=True, slots=True)
class Node:
    """One step of thought."""

    id: str
    role: Role
    status: Status
    run_id: str
    parents: tuple[str, ...] = ()
    branch: str = ""
    summary: str = ""
    content: str = ""
    score: float | None = None
    """From 0 to 1; None: not scored."""
    input_tokens: int = 0
    output_tokens: int = 0
    model: str = ""
    message_id: str = ""
    """The message it answers as, or empty."""
    failure: str = ""
    fallback_from: str = ""
    duration_ms: int = 0

    @property
    def tokens(self) -> int:
        """Tokens read and written for it."""
        return self.input_tokens + self.output_tokens

    @property
    def size(self) -> int:
        """Bytes it counts for: its texts in UTF-8, and a constant for the rest."""
        texts = (
            self.id, *self.parents, self.branch, self.summary, self.content, self.model, self.message_id, self.run_id,
            self.failure, self.fallback_from,
        )  # fmt: skip
        return _OVERHEAD_BYTES + sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)

    def broken_rule(self) -> str | None:
        """The rule that this node breaks by itself, whatever tree it is for; None when it breaks none."""
        if not 1 <= len(self.id) <= MAX_ID:
            return f"its id must have 1 to {MAX_ID} characters"
        if len(set(self.parents)) != len(self.parents):
            return "a parent is named twice"
        if len(self.parents) > 1 and self.role is not Role.MERGE:
            return "only a merge may have several parents"
        if self.score is not None and not (math.isfinite(self.score) and 0 <= self.score <= 1):
            return "its score must be from 0 to 1, or absent"
        if min(self.input_tokens, self.output_tokens, self.duration_ms) < 0:
            return "tokens and durations can't be negative"
        return None


class Outline:
    """What an append must know of a tree: which ids it has, which run each is from, and its size. Never changes."""

    __slots__ = ("_runs", "size")

    def __init__(self) -> None:
        self._runs: dict[str, str] = {}
        self.size = 0
        """Bytes, as Node.size counts them."""

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    def admit(self, nodes: Sequence[Node]) -> tuple["Outline", tuple[Node, ...]]:
        """The outline with these nodes, and those of them that are new.

        A node that the same run has already added is left as it is. Raises TreeInvalid or TreeFull, and then
        admits none of them.
        """
        runs, size, added = dict(self._runs), self.size, []
        for index, node in enumerate(nodes):
            rule = node.broken_rule()
            if rule is not None:
                raise TreeInvalid(f"nodes[{index}]: {rule}")
            if node.id in self._runs:
                if self._runs[node.id] != node.run_id:
                    raise TreeInvalid(f"nodes[{index}]: its id is taken by a node of another run")
                continue
            if node.id in runs:
                raise TreeInvalid(f"nodes[{index}]: its id comes twice")
            if any(parent not in runs for parent in node.parents):
                raise TreeInvalid(f"nodes[{index}]: each parent must be in the tree before its child")
            runs[node.id] = node.run_id
            size += node.size
            added.append(node)
        if added and (len(runs) > MAX_NODES or size > MAX_BYTES):
            raise TreeFull
        outline = Outline()
        outline._runs, outline.size = runs, size
        return outline, tuple(added)


class Tree:
    """A thought tree. Never changes: `append` gives a new one."""

    __slots__ = ("_by_id", "nodes", "outline")

    def __init__(self, nodes: Sequence[Node] = ()) -> None:
        """`nodes` with parents before children. Raises TreeInvalid or TreeFull."""
        self.outline, self.nodes = Outline().admit(nodes)
        self._by_id = {node.id: node for node in self.nodes}

    def append(self, nodes: Sequence[Node]) -> "Tree":
        """The tree with these nodes at the end; those the same run already added are left as they are.

        Raises TreeInvalid or TreeFull.
        """
        outline, added = self.outline.admit(nodes)
        tree = Tree()
        tree.outline, tree.nodes = outline, self.nodes + added
        tree._by_id = self._by_id | {node.id: node for node in added}
        return tree

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._by_id

    def __getitem__(self, node_id: str) -> Node:
        """The node of an id. Raises KeyError."""
        return self._by_id[node_id]

    def lineage(self, node_id: str) -> tuple[Node, ...]:
        """The node and all its ancestors, parents before children. Raises KeyError when there is no such node."""
        found, waiting = {node_id}, [self._by_id[node_id]]
        while waiting:
            for parent in waiting.pop().parents:
                if parent not in found:
                    found.add(parent)
                    waiting.append(self._by_id[parent])
        return tuple(node for node in self.nodes if node.id in found)

    def children(self) -> dict[str, tuple[str, ...]]:
        """For every node the ids of its children, in the order they were added."""
        children: dict[str, list[str]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for parent in node.parents:
                children[parent].append(node.id)
        return {parent: tuple(ids) for parent, ids in children.items()}


def total_tokens(nodes: Iterable[Node]) -> int:
    """Tokens that the models read and wrote for these nodes."""
    return sum(node.tokens for node in nodes)
