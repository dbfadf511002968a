"""A client for OpenAI-compatible chat servers: whole and streamed answers, retries, usage, reasoning cut out."""

from kit.model.chat import ChatRequest, Completion, End, Message, Piece, Usage
from kit.model.client import ChatModel
from kit.model.errors import ModelError, ModelErrorReason, UnusableKey, UnusableUrl
from kit.model.retry import RetryRecord
from kit.model.tokens import estimate_tokens

__all__ = [
    "ChatModel",
    "ChatRequest",
    "Completion",
    "End",
    "Message",
    "ModelError",
    "ModelErrorReason",
    "Piece",
    "RetryRecord",
    "UnusableKey",
    "UnusableUrl",
    "Usage",
    "estimate_tokens",
]
