import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.treestore.tree import MAX_BYTES, MAX_NODES, Node, Role, Status, Tree, TreeFull, TreeInvalid, total_tokens


def node(node_id: str, *parents: str, run: str = "run", **fields: Any) -> Node:
    role = Role.MERGE if len(parents) > 1 else Role.EXECUTE
    made = Node(id=node_id, role=role, status=Status.EXPLORED, run_id=run, parents=parents)
    return dataclasses.replace(made, **fields)


def forest(drawn: list[tuple[int, float | None, int]]) -> list[Node]:
    """Nodes with parents before children, a merge wherever one has several; a parent is a bit of the first number."""
    nodes: list[Node] = []
    for index, (bits, score, tokens) in enumerate(drawn):
        parents = [f"n{earlier}" for earlier in range(index) if bits >> earlier & 1]
        nodes.append(node(f"n{index}", *parents, score=score, input_tokens=tokens))
    return nodes


def forests() -> st.SearchStrategy[list[Node]]:
    one = st.tuples(st.integers(0, 2**12 - 1), st.none() | st.floats(0, 1), st.integers(0, 1000))
    return st.lists(one, max_size=12).map(forest)


@given(forests())
def test_every_parent_stands_before_its_child(nodes: list[Node]) -> None:
    seen: set[str] = set()
    for each in Tree(nodes).nodes:
        assert seen.issuperset(each.parents)
        seen.add(each.id)


@given(forests(), st.data())
def test_a_lineage_is_the_node_with_exactly_its_ancestors_in_the_trees_order(
    nodes: list[Node], data: st.DataObject
) -> None:
    if not nodes:
        return
    start = data.draw(st.sampled_from(nodes)).id
    parents = {each.id: each.parents for each in nodes}
    ancestors = {start}
    for each in reversed(nodes):
        if each.id in ancestors:
            ancestors.update(parents[each.id])
    assert [each.id for each in Tree(nodes).lineage(start)] == [each.id for each in nodes if each.id in ancestors]


@given(forests())
def test_children_are_the_parents_turned_round(nodes: list[Node]) -> None:
    edges = {(parent, each.id) for each in nodes for parent in each.parents}
    children = Tree(nodes).children()
    assert {(parent, child) for parent, ids in children.items() for child in ids} == edges
    assert set(children) == {each.id for each in nodes}


@given(forests(), st.integers(0, 30))
def test_appending_in_two_parts_is_the_same_as_at_once(nodes: list[Node], cut: int) -> None:
    whole = Tree(nodes)
    parts = Tree(nodes[:cut]).append(nodes[cut:])
    assert (parts.nodes, parts.outline.size) == (whole.nodes, whole.outline.size)


@given(forests())
def test_appending_what_the_same_run_has_added_changes_nothing(nodes: list[Node]) -> None:
    tree = Tree(nodes)
    assert tree.append(nodes).nodes == tree.nodes


@given(forests())
def test_a_tree_in_which_a_parent_comes_later_is_refused(nodes: list[Node]) -> None:
    if any(each.parents for each in nodes):
        with pytest.raises(TreeInvalid):
            Tree(list(reversed(nodes)))


@given(forests())
def test_total_tokens_are_the_sum_over_all_nodes(nodes: list[Node]) -> None:
    assert total_tokens(nodes) == sum(each.input_tokens + each.output_tokens for each in nodes)


def test_a_refused_append_leaves_the_tree_as_it_was() -> None:
    tree = Tree([node("a")])
    with pytest.raises(TreeInvalid):
        tree.append([node("b", "a"), node("c", "missing")])
    assert [each.id for each in tree.nodes] == ["a"]


def test_a_node_that_comes_again_from_the_same_run_stays_as_it_was() -> None:
    tree = Tree([node("a", content="first")]).append([node("a", content="second")])
    assert tree["a"].content == "first"


def test_an_id_of_another_run_is_refused() -> None:
    with pytest.raises(TreeInvalid, match="another run"):
        Tree([node("a", run="one")]).append([node("a", run="two")])


def test_an_id_twice_in_one_append_is_refused() -> None:
    with pytest.raises(TreeInvalid, match="twice"):
        Tree([node("a"), node("a")])


def test_a_cycle_is_refused() -> None:
    with pytest.raises(TreeInvalid, match="before its child"):
        Tree([node("a", "b"), node("b", "a")])


def test_a_node_that_is_its_own_parent_is_refused() -> None:
    with pytest.raises(TreeInvalid, match="before its child"):
        Tree([node("a", "a")])


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.MERGE])
def test_only_a_merge_has_several_parents(role: Role) -> None:
    tree = Tree([node("a"), node("b")])
    with pytest.raises(TreeInvalid, match="merge"):
        tree.append([node("c", "a", "b", role=role)])


def test_a_merge_joins_both_lineages() -> None:
    tree = Tree([node("a"), node("b"), node("other"), node("m", "a", "b")])
    assert [each.id for each in tree.lineage("m")] == ["a", "b", "m"]


def test_a_parent_named_twice_is_refused() -> None:
    with pytest.raises(TreeInvalid, match="named twice"):
        Tree([node("a"), node("m", "a", "a")])


@pytest.mark.parametrize("score", [-0.01, 1.01, math.nan, math.inf, -math.inf])
def test_a_score_outside_0_to_1_is_refused(score: float) -> None:
    with pytest.raises(TreeInvalid, match="score"):
        Tree([node("a", score=score)])


@pytest.mark.parametrize("score", [0.0, 1.0, 0.5, None])
def test_a_score_from_0_to_1_or_none_is_taken(score: float | None) -> None:
    assert Tree([node("a", score=score)])["a"].score == score


@pytest.mark.parametrize("node_id", ["", "x" * 51])
def test_an_id_must_have_1_to_50_characters(node_id: str) -> None:
    with pytest.raises(TreeInvalid, match="50"):
        Tree([node(node_id)])


@pytest.mark.parametrize("field", ["input_tokens", "output_tokens", "duration_ms"])
def test_negative_counts_are_refused(field: str) -> None:
    fields: dict[str, Any] = {field: -1}
    with pytest.raises(TreeInvalid, match="negative"):
        Tree([node("a", **fields)])


def test_exploring_has_no_name_among_what_is_stored() -> None:
    with pytest.raises(ValueError):
        Status("exploring")


def test_a_tree_4000_deep_works() -> None:
    nodes = [node("n0")] + [node(f"n{index}", f"n{index - 1}") for index in range(1, 4000)]
    tree = Tree(nodes)
    assert len(tree.lineage("n3999")) == 4000
    assert tree.children()["n3998"] == ("n3999",)


def test_the_5000th_node_is_taken_and_the_next_refused() -> None:
    tree = Tree([node(f"n{index}") for index in range(MAX_NODES)])
    with pytest.raises(TreeFull):
        tree.append([node("one too many")])


def test_a_full_tree_still_takes_the_repeat_of_what_it_has() -> None:
    nodes = [node(f"n{index}") for index in range(MAX_NODES)]
    assert len(Tree(nodes).append(nodes[-1:]).nodes) == MAX_NODES


def test_16_mib_of_text_are_refused() -> None:
    half = "é" * (MAX_BYTES // 4)
    tree = Tree([node("a", content=half)])
    with pytest.raises(TreeFull):
        tree.append([node("b", content=half)])


def test_a_refusal_quotes_nothing_of_the_nodes() -> None:
    with pytest.raises(TreeInvalid) as refusal:
        Tree([node("private-id", "private-parent", content="private text")])
    assert "private" not in str(refusal.value)
