"""Outlines of trees in memory, the ones used last, bounded by how many nodes they have in all."""

from collections import OrderedDict

from services.treestore.tree import Outline

MAX_KEPT_NODES = 200_000
"""About 40 MB."""


class Outlines:
    """For a conversation the outline of its tree at one version, as committed."""

    def __init__(self, max_nodes: int = MAX_KEPT_NODES) -> None:
        self._kept: OrderedDict[str, tuple[int, Outline]] = OrderedDict()
        self._nodes = 0
        self._max_nodes = max_nodes

    def get(self, conversation_id: str) -> tuple[int, Outline] | None:
        """Version and outline, if they are kept."""
        known = self._kept.get(conversation_id)
        if known is not None:
            self._kept.move_to_end(conversation_id)
        return known

    def keep(self, conversation_id: str, version: int, outline: Outline) -> None:
        """Keep an outline; those not used for longest make room for it."""
        self.forget(conversation_id)
        self._kept[conversation_id] = (version, outline)
        # An empty tree takes room, too.
        self._nodes += len(outline) + 1
        while self._nodes > self._max_nodes and len(self._kept) > 1:
            self.forget(next(iter(self._kept)))

    def forget(self, conversation_id: str) -> None:
        """Drop one."""
        known = self._kept.pop(conversation_id, None)
        if known is not None:
            self._nodes -= len(known[1]) + 1
