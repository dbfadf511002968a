"""The forms of steps: what each role is asked for, and how its answer is read."""

from collections.abc import Sequence

from services.engine.domain import Role
from services.engine.labels import Labels
from services.engine.reading import (
    CRITIQUE_SCHEMA,
    STEPS_SCHEMA,
    SUMMARY_CHARACTERS,
    Critique,
    Step,
    read_critique,
    read_steps,
    split_summary,
)
from services.engine.think import Answered, Form, Reading


def decompose(most: int) -> Form[list[Step]]:
    """Takes the question apart into at most `most` steps."""

    def read(text: str, labels: Labels) -> Reading[list[Step]] | None:
        steps = read_steps(text, most)
        if steps is None:
            return None
        summary = labels.completed("decompose", n=len(steps), list=", ".join(step.title for step in steps))
        if len(summary) > SUMMARY_CHARACTERS:
            summary = summary[: SUMMARY_CHARACTERS - 1].rsplit(" ", 1)[0].rstrip(",;:") + "…"
        return Reading(steps, summary, plan(steps))

    return Form(Role.DECOMPOSE, read, STEPS_SCHEMA)


def _read_work(text: str, _: Labels) -> Reading[None] | None:
    parts = split_summary(text)
    return None if parts is None else Reading(None, *parts)


def _read_critique(text: str, labels: Labels) -> Reading[Critique] | None:
    critique = read_critique(text)
    if critique is None:
        return None
    points = len(critique.weaknesses)
    said = critique.summary or labels.completed("critique_points" if points else "critique", n=points)
    content = "\n".join(f"- {point}" for point in critique.weaknesses) or labels.phrase("nothing_to_correct")
    return Reading(critique, said, content)


EXECUTE: Form[None] = Form(Role.EXECUTE, _read_work)
CRITIQUE: Form[Critique] = Form(Role.CRITIQUE, _read_critique, CRITIQUE_SCHEMA)


def plan(steps: Sequence[Step]) -> str:
    """The steps as numbered lines."""
    return "\n".join(f"{number}. {line(step)}" for number, step in enumerate(steps, 1))


def line(step: Step) -> str:
    """One step on one line."""
    return f"{step.title} : {step.goal}" if step.goal else step.title


def work(done: Sequence[Answered[None]]) -> str:
    """What the steps so far have established, each under its title."""
    return "\n\n".join(f"### {step.title}\n{step.content}" for step in done)
