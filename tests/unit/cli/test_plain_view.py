"""A run in a pipe."""

import io

import pytest

from cli.screen.plain import PlainView
from cli.screen.progress import Progress
from tests.unit.cli import events
from tests.unit.cli.events import Event


def shown(sequence: list[Event]) -> list[str]:
    output = io.StringIO()
    view, progress = PlainView(output), Progress()
    for event in sequence:
        progress.apply(event)
        view.show("", event, progress)
    view.close(progress)
    return output.getvalue().splitlines()


@pytest.fixture(autouse=True)
def _french(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LINTELLO_LOCALE", raising=False)


def test_a_chain_shows_each_step_as_it_begins_and_as_it_ends() -> None:
    lines = shown(events.chain())
    assert lines[0] == "🧠 Réflexion en mode Recherche : chaîne, complexité 4/5"
    assert lines[1:3] == [
        "🔍 1/5 Décomposition de la tâche…",
        "✅ 1/5 Deux étapes retenues  (1.2 s, 340 tokens)",
    ]
    assert [line[:5] for line in lines[3:10]] == ["📊 2/5", "✅ 2/5", "📊 3/5", "✅ 3/5", "🔎 4/5", "✅ 4/5", "🎯 5/5"]


def test_the_answer_of_a_chain_stands_whole_between_steps_and_tree() -> None:
    lines = shown(events.chain())
    place = lines.index("La coopérative se finance de **trois** façons.")
    assert lines[place - 2 : place] == ["🎯 5/5 Rédaction de la réponse…", ""]
    assert lines[place + 1 : place + 3] == ["", "✅ 5/5 Réponse complète  (1.2 s, 340 tokens)"]
    assert lines.index("Arbre de pensée") > place


def test_the_tree_of_a_chain_is_one_node_under_the_other() -> None:
    lines = shown(events.chain())
    drawn = lines[lines.index("Arbre de pensée") + 1 :][: len(events.CHAIN)]
    assert [line.index("(") > 0 and len(line) - len(line.lstrip(" └─│├")) for line in drawn] == [4, 8, 12, 16, 20]
    assert drawn[-1].endswith("🎯 Réponse complète  (retenu, essai-small, 340 tokens)")


def test_the_last_line_names_conversation_model_tokens_and_cost() -> None:
    last = shown(events.chain())[-1]
    assert last == f"conversation {events.CONVERSATION} · essai-small · 1\u202f700 tokens · 0.0003 €"


def test_a_classic_answer_shows_no_tree() -> None:
    assert shown(events.classic()) == [
        "↪ Mode redaction",
        "",
        "La coopérative se finance de **trois** façons.",
        "",
        f"conversation {events.CONVERSATION} · essai-small · 57 tokens · 0.0000 €",
    ]


def test_a_think_that_fails_shows_its_failed_step_and_then_the_classic_answer() -> None:
    lines = shown(events.failed_think())
    assert "⚠️ 1/5 Le modèle n'a pas répondu  (2.0 s, 0 tokens)" in lines
    assert lines.index("La coopérative se finance de **trois** façons.") > 3
    assert any(line.startswith("🧠 Réflexion terminée") and line.endswith("interrompue") for line in lines)


def test_what_came_before_a_fault_stays_and_is_marked_partial() -> None:
    lines = shown(events.broken())
    assert lines[1] == "La coopérative "
    assert lines[-1].endswith("· partiel")


def test_a_run_without_its_end_shows_no_last_line() -> None:
    assert shown(events.chain()[:4]) == [
        "🧠 Réflexion en mode Recherche : chaîne, complexité 4/5",
        "🔍 1/5 Décomposition de la tâche…",
        "✅ 1/5 Deux étapes retenues  (1.2 s, 340 tokens)",
    ]


def test_an_event_of_an_unknown_type_is_passed_over() -> None:
    strange = {"type": "from_the_future", "content": "?"}
    assert shown([strange, *events.classic()]) == shown(events.classic())


def test_what_a_model_writes_cannot_steer_the_terminal() -> None:
    lines = shown([events.content("a\x1b]0;title\x07b\x9bc")])
    assert lines == ["", "a]0;titlebc"]


def test_english_is_spoken_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINTELLO_LOCALE", "en")
    assert "Thought tree" in shown(events.chain())
