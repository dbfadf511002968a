"""A thought tree as a rich tree; the same tree is plain text on a console without a terminal."""

from functools import cache
from importlib import resources
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from cli.screen.format import number, one_line, text, tokens
from cli.texts import say

DEEPEST = 12
"""Nodes below this depth aren't indented any further: a long conversation stays readable."""

PIPE_WIDTH = 10_000

Node = dict[str, Any]


def draw(title: str, nodes: list[Node]) -> Tree:
    """The tree of nested nodes under a title. Iterative: a tree may be thousands of nodes deep."""
    root = Tree(Text(title, style="bold"), guide_style="dim")
    waiting: list[tuple[Tree, int, Node]] = [(root, 0, node) for node in reversed(nodes)]
    while waiting:
        parent, depth, node = waiting.pop()
        drawn = parent.add(label(node))
        below = (drawn, depth + 1) if depth < DEEPEST else (parent, depth)
        children = node.get("children")
        if isinstance(children, list):
            waiting.extend((*below, child) for child in reversed(children) if isinstance(child, dict))
    return root


def nest(nodes: list[Node]) -> list[Node]:
    """Nested nodes out of flat ones, each under its first parent; one whose parent isn't there stands at the top."""
    by_id: dict[str, Node] = {text(node.get("id")): {**node, "children": []} for node in nodes}
    top: list[Node] = []
    for node in by_id.values():
        parents = node.get("parents")
        first = by_id.get(text(parents[0])) if isinstance(parents, list) and parents else None
        (top if first is None else first["children"]).append(node)
    return top


def label(node: Node) -> Text:
    """Icon of the role, summary in the colour of the status, then score, model and tokens."""
    icons = _icons()
    icon = icons["failed"] if node.get("failure") else icons["roles"].get(text(node.get("role")), "•")
    branch = one_line(text(node.get("branch")))
    summary = one_line(text(node.get("summary")))
    score, status = node.get("score"), text(node.get("status"))
    details = [
        say(f"status.{status}") if status in icons["statuses"] else "",
        "" if score is None else f"{number(score):.2f}",
        one_line(text(node.get("model"))),
        tokens(int(number(node.get("tokens")))),
    ]
    line = Text(f"{icon} ")
    line.append(f"[{branch}] " if branch else "", style="bold")
    line.append(summary or text(node.get("role")), style=icons["statuses"].get(status, ""))
    line.append(f"  ({', '.join(filter(None, details))})", style="dim")
    return line


def print_tree(output: TextIO, title: str, nodes: list[Node]) -> None:
    """Print it. In a pipe a line is as long as it is: nothing is wrapped or cut."""
    console = Console(file=output) if output.isatty() else Console(file=output, width=PIPE_WIDTH)
    console.print(draw(title, nodes))


@cache
def _icons() -> dict[str, Any]:
    import yaml

    icons: dict[str, Any] = yaml.safe_load(resources.files(__package__).joinpath("icons.yaml").read_text("utf-8"))
    return icons
