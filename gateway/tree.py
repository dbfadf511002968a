"""The thought tree as JSON, flat or nested. Pure; no recursion, so a tree may be as deep as it likes.

The nested form is written piece by piece: a JSON library would follow the nesting with its own stack and give up.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

FORMAT = 1


@dataclass(frozen=True)
class RunFacts:
    """What the tree says of one run."""

    schema: str | None
    mode: str | None
    complexity: int | None
    display_template: str | None
    partial: bool

    def as_json(self) -> dict[str, Any]:
        """As an entry of `runs`."""
        return {
            "schema": self.schema,
            "mode": self.mode,
            "complexity": self.complexity,
            "display_template": self.display_template,
            "partial": self.partial,
        }


def tree_data(nodes: Sequence[Mapping[str, Any]], runs: Mapping[str, RunFacts], nested: bool) -> bytes:
    """A whole tree, or some of its nodes, as JSON text.

    `nodes` are flat with `id` and `parents`, parents before children. In the nested form a node stands under its first
    parent that is among them, at the top when none is; a merge stands once, and its `parents` name them all.
    The head speaks of the last run that thought. `runs` are the oldest in front.
    """
    thought = [run for run in runs.values() if run.schema]
    last = thought[-1] if thought else None
    head = {
        "format": FORMAT,
        "schema": last.schema if last else None,
        "mode": last.mode if last else None,
        "complexity": last.complexity if last else None,
    }
    body = nested_nodes(nodes) if nested else orjson.dumps(list(nodes))
    tail = orjson.dumps({name: run.as_json() for name, run in runs.items()})
    return b"".join((orjson.dumps(head)[:-1], b',"nodes":', body, b',"runs":', tail, b"}"))


def nested_nodes(nodes: Iterable[Mapping[str, Any]]) -> bytes:
    """The nodes as nested JSON: a list of those at the top, each with its `children`."""
    known: dict[str, Mapping[str, Any]] = {}
    children: dict[str | None, list[str]] = {None: []}
    for node in nodes:
        above = next((parent for parent in node["parents"] if parent in known), None)
        known[node["id"]] = node
        children[node["id"]] = []
        children[above].append(node["id"])
    written: list[bytes] = []
    # What is still to write, the next on top: a node's id, or text that stands as it is.
    to_write: list[str | bytes] = [b"]", *_listed(children[None]), b"["]
    while to_write:
        item = to_write.pop()
        if isinstance(item, bytes):
            written.append(item)
        else:
            written.append(orjson.dumps(known[item])[:-1] + b',"children":[')
            to_write.extend((b"]}", *_listed(children[item])))
    return b"".join(written)


def _listed(ids: Sequence[str]) -> list[str | bytes]:
    """The ids with commas between them, the last in front."""
    parts: list[str | bytes] = []
    for one in reversed(ids):
        parts.extend((one, b","))
    return parts[:-1]
