"""Runs: stopping one."""

from fastapi import APIRouter
from lintello.engine.v1 import engine_pb2 as pb
from starlette.responses import Response

from gateway.routes.common import AsCaller, ToServices

router = APIRouter(prefix="/api/runs", tags=["runs"])


@router.delete("/{run_id}", status_code=204)
async def stop_run(run_id: str, caller: AsCaller, clients: ToServices) -> Response:
    """Stop a run; what it has said is kept. Stopping one that has ended is the same answer."""
    await clients.engine_peer.unary(clients.engine.StopRun, pb.StopRunRequest(run_id=run_id), caller)
    return Response(status_code=204)
