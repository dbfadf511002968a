"""Me: who asks."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.languages import locale_of
from gateway.routes.common import AsCaller, json_answer
from gateway.shapes import Me

router = APIRouter(prefix="/api/me", tags=["me"])


@router.get("", response_model=Me)
async def get_me(request: Request, caller: AsCaller) -> Response:
    """Who the credentials speak for, and whether the trial model answers."""
    return json_answer(
        {
            "user": caller.user,
            "subscription": caller.subscription,
            "roles": sorted(caller.roles),
            "locale": locale_of(request),
            "trial_model": request.app.state.trial_model,
        }
    )
