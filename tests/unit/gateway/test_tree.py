"""The tree as JSON, flat and nested."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.tree import RunFacts, tree_data

RUN = RunFacts("chain", "recherche", 4, "drawer", False)
CLASSIC = RunFacts(None, "conversation", None, None, False)


def node(name: str, *parents: str) -> dict[str, Any]:
    return {"id": name, "parents": list(parents), "content": f"« {name} »"}


def nested(*nodes: dict[str, Any]) -> Any:
    return json.loads(tree_data(nodes, {"r": RUN}, nested=True))


def walk(nodes: list[Any]) -> Iterator[Any]:
    waiting = list(nodes)
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(one["children"])


def test_a_child_stands_under_its_parent_in_the_order_given() -> None:
    tree = nested(node("a"), node("b", "a"), node("c", "a"))
    assert [child["id"] for child in tree["nodes"][0]["children"]] == ["b", "c"]


def test_a_merge_stands_once_under_its_first_parent_and_names_both() -> None:
    tree = nested(node("a"), node("b"), node("m", "a", "b"))
    assert [one["id"] for one in walk(tree["nodes"])].count("m") == 1
    assert tree["nodes"][0]["children"][0]["parents"] == ["a", "b"]


def test_a_node_whose_parents_are_elsewhere_stands_at_the_top() -> None:
    assert [one["id"] for one in nested(node("b", "not-here"))["nodes"]] == ["b"]


def test_no_nodes_are_an_empty_tree() -> None:
    assert nested()["nodes"] == []


def test_a_chain_of_4000_is_written_whole() -> None:
    nodes = [node("0"), *(node(str(n), str(n - 1)) for n in range(1, 4000))]
    text = tree_data(nodes, {}, nested=True)
    assert text.count(b'"children":[') == 4000
    assert text.count(b"[") == text.count(b"]")


def test_the_flat_form_has_no_children() -> None:
    tree = json.loads(tree_data([node("a"), node("b", "a")], {"r": RUN}, nested=False))
    assert tree["nodes"] == [node("a"), node("b", "a")]


def test_the_head_speaks_of_the_last_run_that_thought() -> None:
    later = RunFacts("chain", "code", 3, "drawer", True)
    tree = json.loads(tree_data([], {"1": RUN, "2": later, "3": CLASSIC}, nested=True))
    assert (tree["format"], tree["schema"], tree["mode"], tree["complexity"]) == (1, "chain", "code", 3)


def test_each_run_says_how_it_ended() -> None:
    tree = json.loads(tree_data([], {"r": RUN}, nested=True))
    assert tree["runs"] == {
        "r": {
            "schema": "chain",
            "mode": "recherche",
            "complexity": 4,
            "display_template": "drawer",
            "partial": False,
        }
    }


@given(st.lists(st.lists(st.integers(min_value=0, max_value=30), max_size=3), max_size=30))
def test_nesting_loses_and_doubles_no_node(shape: list[list[int]]) -> None:
    nodes = [node(str(n), *(str(p) for p in sorted(set(parents)) if p < n)) for n, parents in enumerate(shape)]
    found = [{key: one[key] for key in ("id", "parents", "content")} for one in walk(nested(*nodes)["nodes"])]
    assert sorted(found, key=lambda one: int(one["id"])) == nodes
