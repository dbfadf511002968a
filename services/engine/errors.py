"""What the engine's exceptions look like from outside."""

import grpc

from kit.errors import ErrorTable, Refusal
from services.engine.modes.catalog import ModeUnknown
from services.engine.ports import RunClosed, StoreAway
from services.engine.runs import RunUnknown
from services.engine.subscriptions import ForcedThinkingForbidden

ERRORS: ErrorTable = {
    ModeUnknown: Refusal(grpc.StatusCode.INVALID_ARGUMENT, "MODE_UNKNOWN"),
    ForcedThinkingForbidden: Refusal(grpc.StatusCode.PERMISSION_DENIED, "SUBSCRIPTION_FORBIDS_FORCED_THINKING"),
    RunUnknown: Refusal(grpc.StatusCode.NOT_FOUND, "NOT_FOUND", "not found"),
    StoreAway: Refusal(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "the store doesn't answer"),
    RunClosed: Refusal(grpc.StatusCode.FAILED_PRECONDITION, "RUN_CLOSED", "the run has ended"),
}
