"""How many tokens a text is, where no server said so."""

import math
from collections.abc import Sequence

from kit.model.chat import Message, Usage

# The usual 4 characters a token came out 20 % low on French prose, counted with Mistral's tekken tokenizer.
_CHARACTERS_PER_TOKEN = 3.3
# Chat templates put the role and the ends around each message.
_TOKENS_PER_MESSAGE = 4
# Less text than this says little, and more than the second number is forgotten by and by.
_ENOUGH_CHARACTERS = 200
_MANY_CHARACTERS = 400_000
# No tokenizer in use is outside: what a server reports beyond holds tokens of no text that was seen.
_FEWEST, _MOST = 1.0, 8.0


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is: one for every 3.3 characters, rounded up. JSON and code are more."""
    return math.ceil(len(text) / _CHARACTERS_PER_TOKEN)


class TokenRates:
    """How many characters a token has at one server: as its own reports say, once there are some; else 3.3."""

    def __init__(self) -> None:
        self._prompts = _Rate()
        self._answers = _Rate()

    def learn(self, messages: Sequence[Message], characters: int, reported: Usage) -> None:
        """Take a server's own numbers for a prompt and the `characters` it answered."""
        around = len(messages) * _TOKENS_PER_MESSAGE
        self._prompts.learn(_size(messages), reported.input_tokens - around)
        self._answers.learn(characters, reported.output_tokens)

    def prompt(self, messages: Sequence[Message]) -> int:
        """About how many tokens a prompt is."""
        return self._prompts.tokens(_size(messages)) + len(messages) * _TOKENS_PER_MESSAGE

    def answer(self, characters: int) -> int:
        """About how many tokens so many characters of an answer are."""
        return self._answers.tokens(characters)


class _Rate:
    def __init__(self) -> None:
        self._characters = 0.0
        self._tokens = 0.0

    def learn(self, characters: int, tokens: int) -> None:
        if characters <= 0 or tokens <= 0:
            return
        self._characters += characters
        self._tokens += tokens
        if self._characters > _MANY_CHARACTERS:
            self._characters /= 2
            self._tokens /= 2

    def tokens(self, characters: int) -> int:
        per_token = _CHARACTERS_PER_TOKEN
        if self._characters >= _ENOUGH_CHARACTERS:
            per_token = min(_MOST, max(_FEWEST, self._characters / self._tokens))
        return math.ceil(characters / per_token)


def _size(messages: Sequence[Message]) -> int:
    return sum(len(message.content) for message in messages)
