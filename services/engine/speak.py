"""Speaking: one streamed call whose pieces are the answer, kept whatever cuts it short."""

import asyncio
import time
from contextlib import aclosing

from kit.ids import new_id
from kit.text import first_sentence
from services.engine.domain import Node, Role, Status
from services.engine.journal import Journal
from services.engine.ports import Model, ModelCall, ModelFailed, Reply
from services.engine.reading import SUMMARY_CHARACTERS

STOPPED = "stopped"
BUDGET = "budget"


async def speak(
    journal: Journal,
    model: Model,
    call: ModelCall,
    role: Role,
    parents: tuple[str, ...],
    seconds: float,
    node_id: str = "",
) -> str:
    """Stream a call as the answer, and conclude the journal with its node if anything was said.

    `seconds` bounds the whole of it. Returns why it ended early (a ModelFailed reason or `budget`), or "" when it
    ended well. A cancellation passes through, and what came until then is kept.
    """
    pieces: list[str] = []
    reply: Reply | None = None
    failure = STOPPED
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds), aclosing(model.stream(call)) as stream:
            async for item in stream:
                if isinstance(item, Reply):
                    reply = item
                else:
                    pieces.append(item)
                    journal.say(item)
        failure = ""
    except ModelFailed as error:
        failure, reply = error.reason, error.spent
    except TimeoutError:
        failure = BUDGET
    finally:
        used = reply
        if used is None and (pieces or failure in (STOPPED, BUDGET)):
            used = model.estimate(call, "".join(pieces))
        if used is not None:
            journal.charge(used)
            if pieces:
                journal.conclude(_node(journal, used, "".join(pieces), role, parents, failure, began, node_id))
    if failure and pieces:
        journal.partial = True
    return failure


def _node(
    journal: Journal,
    used: Reply,
    text: str,
    role: Role,
    parents: tuple[str, ...],
    failure: str,
    began: float,
    node_id: str,
) -> Node:
    return Node(
        id=node_id or new_id(),
        parents=parents,
        role=role,
        status=Status.SELECTED,
        summary=first_sentence(text, SUMMARY_CHARACTERS),
        content=text,
        model=used.usage.model,
        run_id=journal.run_id,
        input_tokens=used.usage.input_tokens,
        output_tokens=used.usage.output_tokens,
        duration_ms=int((time.monotonic() - began) * 1000),
        message_id=journal.answer_id,
        failure=failure,
        fallback_from=used.fallback_from,
    )
