"""What the engine's exceptions look like from outside."""

import grpc

from kit.errors import ErrorTable, Refusal
from services.engine.modes.catalog import ModeUnknown
from services.engine.ports import ReplayAway, RunClosed, StoreAway
from services.engine.subscriptions import ForcedThinkingForbidden
from services.engine.watch import EventsExpired, SequenceAhead

ERRORS: ErrorTable = {
    ModeUnknown: Refusal(grpc.StatusCode.INVALID_ARGUMENT, "MODE_UNKNOWN"),
    ForcedThinkingForbidden: Refusal(grpc.StatusCode.PERMISSION_DENIED, "SUBSCRIPTION_FORBIDS_FORCED_THINKING"),
    SequenceAhead: Refusal(grpc.StatusCode.OUT_OF_RANGE, "SEQUENCE_AHEAD"),
    EventsExpired: Refusal(grpc.StatusCode.FAILED_PRECONDITION, "EVENTS_EXPIRED"),
    StoreAway: Refusal(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "the store doesn't answer"),
    ReplayAway: Refusal(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "the replay log doesn't answer"),
    RunClosed: Refusal(grpc.StatusCode.FAILED_PRECONDITION, "RUN_CLOSED", "the run has ended"),
}
