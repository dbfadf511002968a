"""Wording: what people read of the gateway's own, in both languages."""

from collections.abc import Mapping
from typing import Any

from gateway.languages import Locale

# pydantic's error types → words; $names are the error's context. Never the value that was sent.
VALIDATION: Mapping[str, tuple[str, str]] = {
    "extra_forbidden": ("champ inconnu", "unknown field"),
    "missing": ("champ obligatoire", "this field is needed"),
    "literal_error": ("doit être {expected}", "must be {expected}"),
    "string_type": ("doit être un texte", "must be a text"),
    "string_too_long": ("au plus {max_length} caractères", "at most {max_length} characters"),
    "string_too_short": ("au moins {min_length} caractère", "at least {min_length} character"),
    "string_pattern_mismatch": ("doit correspondre à {pattern}", "must match {pattern}"),
    "int_parsing": ("doit être un nombre entier", "must be a whole number"),
    "int_type": ("doit être un nombre entier", "must be a whole number"),
    "greater_than_equal": ("au moins {ge}", "at least {ge}"),
    "less_than_equal": ("au plus {le}", "at most {le}"),
    "model_attributes_type": ("doit être un objet JSON", "must be a JSON object"),
    "dict_type": ("doit être un objet JSON", "must be a JSON object"),
}
REFUSED = ("valeur refusée", "value refused")


def validation_message(error: Mapping[str, Any], locale: Locale) -> str:
    """What one of pydantic's errors says, in the language, without the value."""
    french, english = VALIDATION.get(error["type"], REFUSED)
    context = dict(error.get("ctx", {}))
    if locale == "fr" and "expected" in context:
        context["expected"] = str(context["expected"]).replace(" or ", " ou ")
    return (english if locale == "en" else french).format_map(context)
