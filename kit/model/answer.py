"""An answer read out of a whole body or out of the frames of a stream. No socket, no time."""

from kit.model.chat import ChatRequest, Completion, End, Usage
from kit.model.errors import ModelError, ModelErrorReason
from kit.model.reasoning import ReasoningFilter, without_reasoning
from kit.model.tokens import TokenRates
from kit.model.wire import (
    first_choice,
    generated_characters,
    is_error,
    parse_object,
    served_model,
    text_of,
    usage_of,
)
from kit.text import clean

_DONE = "[DONE]"


def read_completion(body: bytes, request: ChatRequest, rates: TokenRates) -> Completion:
    """The answer in the body of a 200. Raises ModelError (malformed), with the usage if the server named it.

    `rates` estimate what the server didn't report, and learn from what it did.
    """
    payload = parse_object(body)
    if payload is None:
        raise ModelError(ModelErrorReason.MALFORMED, "the model server's answer is not a JSON object", status=200)
    message, _ = first_choice(payload, "message")
    characters = generated_characters(message)
    usage = usage_of(payload.get("usage"), request, characters, rates)
    paid = usage if isinstance(payload.get("usage"), dict) else None
    if is_error(payload):
        raise ModelError(ModelErrorReason.MALFORMED, "the model server answered 200 with an error", status=200)
    text = without_reasoning(clean(text_of(message)))
    if not text.strip():
        raise ModelError(ModelErrorReason.MALFORMED, "the model gave an empty answer", status=200, usage=paid)
    if not usage.estimated:
        rates.learn(request.messages, characters, usage)
    return Completion(text=text, usage=usage, model=served_model(payload) or request.model)


def read_models(body: bytes) -> list[str]:
    """The names in a list of models, in its order. Raises ModelError (malformed)."""
    listed = (parse_object(body) or {}).get("data")
    if not isinstance(listed, list):
        raise ModelError(ModelErrorReason.MALFORMED, "the model server's list of models can't be read", status=200)
    names = (model.get("id") for model in listed if isinstance(model, dict))
    return [name for name in names if isinstance(name, str)]


class StreamedAnswer:
    """An answer that comes in frames. Its first text says something: white space alone waits for the next.

    `rates` estimate what the server doesn't report, and learn from what it does.
    """

    def __init__(self, request: ChatRequest, rates: TokenRates) -> None:
        self._request = request
        self._rates = rates
        self._filter = ReasoningFilter()
        self._model = request.model
        self._named: object = None
        self._finish_reason: str | None = None
        self._reported: object = None
        self._characters = 0
        self._half = ""
        self._blank = ""
        self._frames = 0
        self._spoken = False
        self._done = False

    @property
    def done(self) -> bool:
        """The server said that nothing follows."""
        return self._done

    @property
    def model(self) -> str:
        """The name of the model that serves, as far as is known."""
        return self._model

    @property
    def finished(self) -> bool:
        """The model said that its text ends here; only the usage may follow."""
        return self._finish_reason is not None

    def feed(self, frame: str) -> str:
        """What may be shown after this frame, maybe nothing. Raises ModelError on an error frame or broken JSON."""
        self._frames += 1
        if frame.strip() == _DONE:
            self._done = True
            return ""
        payload = parse_object(frame)
        if payload is None:
            raise self.failure(ModelErrorReason.MALFORMED, "the model server sent a frame that is not a JSON object")
        if is_error(payload):
            reason = ModelErrorReason.INTERRUPTED if self._spoken else ModelErrorReason.MALFORMED
            raise self.failure(reason, "the model server sent an error in the stream")
        delta, finish_reason = first_choice(payload, "delta")
        if (named := payload.get("model")) != self._named:
            # Said with every frame, and hardly ever anew.
            self._named, self._model = named, served_model(payload) or self._model
        self._finish_reason = finish_reason or self._finish_reason
        self._reported = payload.get("usage") or self._reported
        self._characters += generated_characters(delta)
        return self._show(self._filter.feed(self._whole_characters(text_of(delta))))

    def close(self) -> tuple[str, End]:
        """What was held back and the end. Raises ModelError where the stream ended without an answer or within it."""
        if not self._frames:
            raise self.failure(ModelErrorReason.MALFORMED, "the model server's answer is not a stream of events")
        if not (self.done or self.finished):
            raise self.failure(ModelErrorReason.INTERRUPTED, "the stream ended before the answer did")
        rest = self._show(self._filter.feed(clean(self._half)) + self._filter.close())
        if not self._spoken:
            raise self.failure(ModelErrorReason.MALFORMED, "the model gave an empty answer")
        usage = self.usage()
        if not usage.estimated:
            self._rates.learn(self._request.messages, self._characters, usage)
        return rest, End(usage=usage, model=self._model, finish_reason=self._finish_reason)

    def failure(self, reason: ModelErrorReason, message: str) -> ModelError:
        """The error that ends this stream, with the usage so far if anything was generated or reported."""
        used = self.usage() if self._characters or isinstance(self._reported, dict) else None
        return ModelError(reason, message, status=200, usage=used)

    def usage(self) -> Usage:
        """What the answer has used so far."""
        return usage_of(self._reported, self._request, self._characters, self._rates)

    def _whole_characters(self, text: str) -> str:
        """Some servers cut a character outside the BMP between two frames, as the halves of a surrogate pair."""
        text = self._half + text
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        return clean(text[: len(text) - len(self._half)])

    def _show(self, text: str) -> str:
        if self._spoken:
            return text
        text = self._blank + text
        if not text.strip():
            self._blank = text
            return ""
        self._spoken = True
        return text
