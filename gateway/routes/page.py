"""The web client and the API's page: static files of this folder, nothing from elsewhere."""

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse

WEB = Path(__file__).parent.parent / "web"

router = APIRouter(include_in_schema=False)


@router.get("/")
async def index() -> FileResponse:
    """The web client."""
    return FileResponse(WEB / "index.html")


@router.get("/docs")
async def docs() -> FileResponse:
    """The API, read from /openapi.json."""
    return FileResponse(WEB / "docs.html")
