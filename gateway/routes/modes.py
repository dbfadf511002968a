"""Modes: the ways to ask."""

from fastapi import APIRouter
from lintello.engine.v1 import engine_pb2 as pb
from starlette.requests import Request
from starlette.responses import Response

from gateway.languages import locale_of
from gateway.routes.common import AsCaller, ToServices, page
from gateway.shapes import Modes
from gateway.wire import mode_from_wire

router = APIRouter(prefix="/api/modes", tags=["modes"])


@router.get("", response_model=Modes)
async def list_modes(request: Request, caller: AsCaller, clients: ToServices) -> Response:
    """The modes, named in the language of Accept-Language, in the order in which they are shown."""
    wanted = pb.ListModesRequest(locale=locale_of(request))
    found = await clients.engine_peer.unary(clients.modes.ListModes, wanted, caller)
    return page([mode_from_wire(mode) for mode in found.modes], "")
