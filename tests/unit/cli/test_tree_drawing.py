"""A thought tree as text."""

import io

from cli.screen.tree import DEEPEST, nest, print_tree
from tests.unit.cli.events import Event, node


def drawn(nodes: list[Event]) -> list[str]:
    output = io.StringIO()
    print_tree(output, "Arbre", nodes)
    return output.getvalue().splitlines()


def test_a_node_shows_icon_branch_summary_status_score_model_and_tokens() -> None:
    branch = node(1, "execute", "Un prêt", [], branch="a", score=0.8)
    assert drawn([branch]) == ["Arbre", "└── 📊 [a] Un prêt  (exploré, 0.80, essai-small, 340 tokens)"]


def test_a_failed_node_shows_the_warning_instead_of_its_role() -> None:
    assert drawn([node(1, "execute", "Rien", [], failure="timeout", status="pruned")])[1].startswith("└── ⚠️ Rien")


def test_brackets_in_a_summary_are_text_and_no_markup() -> None:
    assert "[bold]gras[/bold]" in drawn([node(1, "execute", "[bold]gras[/bold]", [])])[1]


def test_a_long_line_is_neither_wrapped_nor_cut_in_a_pipe() -> None:
    assert drawn([node(1, "execute", "long " * 24, [])])[1].endswith("340 tokens)")


def test_flat_nodes_are_nested_under_their_first_parent() -> None:
    flat = [node(1, "decompose", "a", []), node(2, "execute", "b", []), node(3, "merge", "c", [], parents=["n2", "n1"])]
    (top,) = nest(flat)
    assert [child["id"] for child in top["children"]] == ["n2"]
    assert [child["id"] for child in top["children"][0]["children"]] == ["n3"]


def test_a_node_whose_parent_is_missing_stands_at_the_top() -> None:
    assert [root["id"] for root in nest([node(2, "execute", "b", [])])] == ["n2"]


def test_a_tree_four_thousand_deep_is_drawn_with_bounded_indentation() -> None:
    chain = [node(number, "execute", "x", []) for number in range(1, 4001)]
    lines = drawn(nest(chain))
    assert len(lines) == 4001
    assert max(line.index("📊") for line in lines[1:]) == 4 * (DEEPEST + 1)
