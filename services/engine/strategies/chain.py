"""Chain: take the question apart, work on each step with all that came before, review, answer.

    decompose(explored)
      execute(explored) → execute … each under the one before
        critique(explored)
          synthesize(selected, message_id)

Source: seed 2.1 and 11.7.
"""

from services.engine.domain import Role
from services.engine.strategies.forms import CRITIQUE, EXECUTE, decompose, line, plan, work
from services.engine.think import Answered, BudgetSpent, Failed, Think


async def chain(think: Think) -> None:
    """Think forward. A step that fails leads straight to the synthesis of what there is; with nothing, to none."""
    most, reviewed = think.config.max_depth, think.config.enable_critique
    done: list[Answered[None]] = []
    critique = think.phrase("no_critique")
    think.expect(most + 2 + reviewed)
    decomposed = await think.ask(decompose(most), think.start, max_steps=most)
    if isinstance(decomposed, Failed):
        return
    steps, parent = decomposed.value, decomposed.node_id
    think.expect(len(steps) + 2 + reviewed)
    try:
        for step in steps:
            before = work(done) or think.phrase("nothing_before")
            worked = await think.ask(EXECUTE, parent, step.title, plan=plan(steps), previous=before, step=line(step))
            if isinstance(worked, Failed):
                break
            done.append(worked)
            parent = worked.node_id
        if reviewed and len(done) == len(steps):
            review = await think.ask(CRITIQUE, parent, previous=work(done))
            if isinstance(review, Answered):
                critique, parent = review.content, review.node_id
    except BudgetSpent:
        pass
    if done:
        await think.answer(Role.SYNTHESIZE, parent, previous=work(done), critique=critique)
