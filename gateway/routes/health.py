"""Health and metrics; open to everybody who can reach the port."""

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from gateway.languages import locale_of
from gateway.problems import problem
from gateway.routes.common import ToServices, json_answer

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> Response:
    """This process answers."""
    return json_answer({"status": "ok"})


@router.get("/readyz")
async def readyz(request: Request, clients: ToServices) -> Response:
    """Every service says it is serving; else 503, naming those that don't."""
    missing = await clients.not_ready()
    if missing:
        return problem("UNAVAILABLE", locale_of(request), ", ".join(missing), not_ready=missing)
    return json_answer({"status": "ready", "not_ready": []})


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Metrics in Prometheus' text format."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)
