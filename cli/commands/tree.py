"""`lintello tree`: a conversation's thought tree."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from cli.commands.client import Gateway
from cli.commands.credentials import own_token
from cli.commands.failure import Failure
from cli.commands.stack_url import find_stack
from cli.texts import say


def tree(conversation: str, as_json: bool, url: str | None, data_dir: Path | None) -> None:
    """Print the tree: drawn, or its nested JSON as the gateway sends it. Raises Failure."""
    target = find_stack(url, data_dir)
    # Flat to be drawn: the nested form of a long conversation is deeper than a JSON parser goes.
    answer = asyncio.run(_fetch(target.urls[0], conversation, "nested" if as_json else "flat"))
    if as_json:
        print(answer)
        return
    from cli.screen.tree import nest, print_tree

    nodes = _nodes(answer)
    if not nodes:
        print(say("tree.empty"))
        return
    print_tree(sys.stdout, say("tree.title"), nest(nodes))


async def _fetch(url: str, conversation: str, shape: str) -> str:
    async with Gateway(url, own_token()) as gateway:
        return await gateway.tree(conversation, shape)


def _nodes(answer: str) -> list[dict[str, Any]]:
    try:
        nodes = json.loads(answer)["tree_data"]["nodes"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Failure(say("tree.unreadable")) from None
    if not isinstance(nodes, list):
        raise Failure(say("tree.unreadable"))
    return [node for node in nodes if isinstance(node, dict)]
