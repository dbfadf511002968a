"""The smallest sensible JSON value that fits a JSON schema."""

from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 12


def value_for(schema: dict[str, Any], words: Iterator[str]) -> Any:
    """Walk `schema` and build a value that fits it, taking texts from `words` (endless, none empty)."""
    return _value(schema, schema, words, 0)


def _value(schema: object, root: dict[str, Any], words: Iterator[str], depth: int) -> Any:
    if depth > MAX_DEPTH:
        return None
    if not isinstance(schema, dict):
        schema = {}
    if isinstance(reference := schema.get("$ref"), str):
        return _value(_resolve(reference, root), root, words, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for union in ("anyOf", "oneOf"):
        if schema.get(union):
            return _value(schema[union][0], root, words, depth + 1)
    if schema.get("allOf"):
        merged: dict[str, Any] = {}
        for part in schema["allOf"]:
            merged |= _resolve(part["$ref"], root) if "$ref" in part else part
        return _value(merged, root, words, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties", {})
            wanted = schema.get("required") or list(properties)
            return {name: _value(properties.get(name, {}), root, words, depth + 1) for name in wanted}
        case "array":
            count = max(schema.get("minItems", 1), min(2, schema.get("maxItems", 2)))
            return [_value(schema.get("items", {}), root, words, depth + 1) for _ in range(count)]
        case "integer":
            return int(_number(schema, 1))
        case "number":
            return _number(schema, 0.5)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return _text(schema, words)


def _number(schema: dict[str, Any], usual: float) -> float:
    lowest = schema.get("minimum", schema.get("exclusiveMinimum", -1e9) + (1 if "exclusiveMinimum" in schema else 0))
    highest = schema.get("maximum", schema.get("exclusiveMaximum", 1e9) - (1 if "exclusiveMaximum" in schema else 0))
    number: float = min(max(usual, lowest), highest)
    return number


def _text(schema: dict[str, Any], words: Iterator[str]) -> str:
    text = next(words)
    while len(text) < schema.get("minLength", 0):
        text = f"{text} {next(words)}"
    return text[: schema["maxLength"]] if "maxLength" in schema else text


def _resolve(reference: str, root: dict[str, Any]) -> dict[str, Any]:
    found: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(part, {}) if part else found
    return found if isinstance(found, dict) else {}
