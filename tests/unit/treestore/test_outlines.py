from services.treestore.outlines import Outlines
from services.treestore.tree import Node, Role, Status, Tree


def tree_of(count: int) -> Tree:
    return Tree([Node(id=f"n{index}", role=Role.EXECUTE, status=Status.EXPLORED, run_id="r") for index in range(count)])


def test_the_outline_kept_last_is_found_with_its_version() -> None:
    outlines = Outlines()
    outlines.keep("c", 1, tree_of(1).outline)
    outlines.keep("c", 2, tree_of(2).outline)
    known = outlines.get("c")
    assert known is not None
    assert (known[0], len(known[1])) == (2, 2)


def test_those_not_used_for_longest_make_room() -> None:
    outlines = Outlines(max_nodes=25)
    for name in ("a", "b"):
        outlines.keep(name, 1, tree_of(9).outline)
    outlines.get("a")
    outlines.keep("c", 1, tree_of(9).outline)
    assert [name for name in "abc" if outlines.get(name)] == ["a", "c"]


def test_keeping_one_again_and_again_takes_no_more_room() -> None:
    outlines = Outlines(max_nodes=25)
    outlines.keep("a", 1, tree_of(9).outline)
    for version in range(10):
        outlines.keep("b", version, tree_of(9).outline)
    assert outlines.get("a") is not None


def test_one_that_is_too_large_alone_is_kept() -> None:
    outlines = Outlines(max_nodes=5)
    outlines.keep("a", 1, tree_of(9).outline)
    assert outlines.get("a") is not None
