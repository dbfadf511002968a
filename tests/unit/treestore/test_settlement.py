from services.treestore.records import Usage
from services.treestore.settlement import usage_of
from services.treestore.tree import Node, Role, Status


def node(model: str, read: int, written: int) -> Node:
    return Node(
        id="n",
        role=Role.EXECUTE,
        status=Status.EXPLORED,
        run_id="r",
        model=model,
        input_tokens=read,
        output_tokens=written,
    )


def test_what_nodes_used_is_added_up_by_model_and_estimated() -> None:
    used = usage_of([node("small", 1, 2), node("large", 3, 4), node("small", 10, 20)])
    assert used == (Usage("small", 11, 22, True), Usage("large", 3, 4, True))


def test_nodes_that_used_nothing_leave_no_line() -> None:
    assert usage_of([node("", 0, 0), node("small", 0, 0)]) == ()


def test_no_node_no_usage() -> None:
    assert usage_of([]) == ()
