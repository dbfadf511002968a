"""The gateway's application: routes, the layers around them, and how refusals are said."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from gateway import problems
from gateway.clients import connect, signer_from
from gateway.edge import BodyLimit, Observed, OwnPagesOnly
from gateway.identity import identity_from
from gateway.metrics import Metrics
from gateway.openapi import describe
from gateway.routes import chat, conversations, health, me, modes, page, runs
from gateway.routes.common import DOCUMENTED_BEARER, PROBLEMS
from gateway.run_tokens import RunTokens
from gateway.settings import GatewaySettings
from kit.errors import InvalidField, RemoteError
from kit.identity import NotVerified


def create_app(settings: GatewaySettings) -> FastAPI:
    """The application. Setting `app.state.closing` ends its event streams. Raises BadSetting."""
    signer = signer_from(settings)
    identity = identity_from(settings)
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.clients = connect(settings, signer)
        try:
            yield
        finally:
            await app.state.clients.close()

    app = FastAPI(
        title="LintellO",
        summary="Gives a plain chat model the habit of thinking.",
        version="1",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=PROBLEMS,
        redirect_slashes=False,
        # Its logs would hold the text of exceptions; its metrics are ours at /metrics.
        telemetry={"logs": False, "metrics": False, "operation_spans": False},
    )
    app.state.identity = identity
    app.state.run_tokens = RunTokens(settings.internal_key.get_secret_value())
    app.state.metrics = metrics
    app.state.locale = settings.locale
    app.state.trial_model = settings.trial_model
    app.state.closing = asyncio.Event()
    _add_routes(app)
    _add_handlers(app)
    describe(app)
    # The last one added sees a request first.
    app.add_middleware(BodyLimit)
    if settings.auth_mode == "dev":
        app.add_middleware(OwnPagesOnly, port=settings.gateway_port)
    app.add_middleware(Observed, metrics=metrics)
    return app


def _add_routes(app: FastAPI) -> None:
    for routes in (chat, runs, conversations, modes, me):
        app.include_router(routes.router, dependencies=[Depends(DOCUMENTED_BEARER)])
    app.include_router(health.router)
    app.include_router(page.router)
    app.mount("/web", StaticFiles(directory=page.WEB), name="web")


def _add_handlers(app: FastAPI) -> None:
    app.add_exception_handler(RemoteError, problems.on_remote)
    app.add_exception_handler(InvalidField, problems.on_invalid)
    app.add_exception_handler(NotVerified, problems.on_not_verified)
    app.add_exception_handler(HTTPException, problems.on_http)
    app.add_exception_handler(RequestValidationError, problems.on_validation)
    app.add_exception_handler(Exception, problems.on_fault)
