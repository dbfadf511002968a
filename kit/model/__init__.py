"""A client for OpenAI-compatible chat servers: whole and streamed answers, retries, usage, reasoning cut out."""

from kit.model.chat import ChatRequest, Completion, End, Message, Piece, Usage
from kit.model.client import ChatModel
from kit.model.errors import ModelError, ModelErrorReason, UnusableKey, UnusableUrl
from kit.model.meter import Meter
from kit.model.tokens import estimate_tokens

__all__ = [
    "ChatModel",
    "ChatRequest",
    "Completion",
    "End",
    "Message",
    "Meter",
    "ModelError",
    "ModelErrorReason",
    "Piece",
    "UnusableKey",
    "UnusableUrl",
    "Usage",
    "estimate_tokens",
]
