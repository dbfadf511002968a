"""Languages: in which of the two an answer goes out."""

from collections.abc import Mapping
from typing import Literal

from starlette.requests import Request

Locale = Literal["fr", "en"]
LOCALES: Mapping[str, Locale] = {"fr": "fr", "en": "en"}


def accepted(header: str, default: Locale) -> Locale:
    """The language of an Accept-Language header that weighs most among those there are; else the default."""
    best, weight = default, 0.0
    for part in header.split(",")[:20]:
        tag, _, parameter = part.strip().partition(";")
        locale = LOCALES.get(tag.strip().lower().partition("-")[0])
        quality = _quality(parameter)
        if locale is not None and quality > weight:
            best, weight = locale, quality
    return best


def locale_of(request: Request) -> Locale:
    """The language a request's body asked for, else its header's; `app.state.locale` is the default."""
    asked: Locale | None = getattr(request.state, "locale", None)
    if asked is not None:
        return asked
    default: Locale = request.app.state.locale
    return accepted(request.headers.get("accept-language", ""), default)


def _quality(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0
