"""Classic: one streamed call, one node of role `conversation`."""

from services.engine import context, routing
from services.engine.domain import Role, Turn
from services.engine.journal import Journal
from services.engine.ports import Model, ModelCall
from services.engine.speak import speak
from services.engine.think import Sight

CLASSIC_SECONDS = 300.0


async def classic(journal: Journal, model: Model, sight: Sight) -> str:
    """Answer in one call. Returns why it ended early, or "" when it ended well."""
    turns = (*sight.history, Turn("user", journal.question.message))
    alias = routing.choose(Role.CONVERSATION, context.size(sight.system, turns), None, sight.requested, sight.detected)
    parent = journal.started.parent_node_id
    call = ModelCall(alias, sight.system, turns)
    return await speak(journal, model, call, Role.CONVERSATION, (parent,) if parent else (), CLASSIC_SECONDS)
