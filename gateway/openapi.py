"""The OpenAPI document: the framework's, with refusals under the media type they really have."""

from typing import Any

from fastapi import FastAPI

from gateway.problems import MEDIA_TYPE

PROBLEM = {"schema": {"$ref": "#/components/schemas/Problem"}}


def describe(app: FastAPI) -> None:
    """Have the application describe itself this way; made once, when first asked for."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate()
            for methods in document["paths"].values():
                for operation in methods.values():
                    for response in operation["responses"].values():
                        content = response.get("content", {})
                        if content.get("application/json") == PROBLEM:
                            content[MEDIA_TYPE] = content.pop("application/json")
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
