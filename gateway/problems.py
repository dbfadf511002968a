"""Problems: every refusal as an RFC 9457 document, by one table from reason and code to status and title.

A document never holds what was sent, nor anything a service of the house said about its own faults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import orjson
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gateway.languages import Locale, locale_of
from gateway.wording import validation_message
from kit import telemetry
from kit.errors import InvalidField, RemoteError, TooLarge

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2
"""After how long a retry is advised where nobody said."""
MAX_ERRORS = 20


@dataclass(frozen=True)
class Kind:
    """One row of the table: an HTTP status and a title in each language."""

    status: int
    fr: str
    en: str


REASONS: Mapping[str, Kind] = {
    "INVALID_ARGUMENT": Kind(400, "La demande n'est pas valable", "The request isn't valid"),
    "MODE_UNKNOWN": Kind(400, "Ce mode n'existe pas", "There is no such mode"),
    "TREE_INVALID": Kind(400, "Cet arbre n'est pas valable", "This tree isn't valid"),
    "UNAUTHENTICATED": Kind(401, "Il faut vous identifier", "You need to sign in"),
    "FORBIDDEN": Kind(403, "Cet accès vous est refusé", "This isn't open to you"),
    "SUBSCRIPTION_FORBIDS_FORCED_THINKING": Kind(
        403, "Votre abonnement ne permet pas de forcer la réflexion", "Your subscription doesn't allow forced thinking"
    ),
    "NOT_FOUND": Kind(404, "Introuvable", "Not found"),
    "METHOD_NOT_ALLOWED": Kind(405, "Cette méthode n'est pas prévue ici", "This method has no use here"),
    "RUN_IN_PROGRESS": Kind(409, "Une réponse est déjà en cours dans cette conversation", "An answer is in progress"),
    "RUN_CLOSED": Kind(409, "Cette exécution est terminée", "This run has ended"),
    "ID_TAKEN": Kind(409, "Cet identifiant est déjà pris", "This id is taken"),
    "IDEMPOTENCY_KEY_REUSED": Kind(
        409,
        "Cette clé d'idempotence a déjà servi pour une autre demande",
        "This idempotency key came with another request",
    ),
    "SEQUENCE_AHEAD": Kind(
        409, "Cette exécution n'a pas encore d'événement de ce numéro", "The run has no event of this number yet"
    ),
    "TREE_FULL": Kind(409, "Cette conversation est pleine : ouvrez-en une autre", "This conversation is full"),
    "EVENTS_EXPIRED": Kind(
        410,
        "Les événements de cette exécution ne sont plus gardés ; la réponse est dans la conversation",
        "The events of this run are kept no more; its answer is in the conversation",
    ),
    "TOO_LARGE": Kind(413, "C'est trop volumineux", "This is too large"),
    "UNSUPPORTED_MEDIA_TYPE": Kind(415, "Il faut envoyer du JSON", "JSON is needed"),
    "RESOURCE_EXHAUSTED": Kind(429, "Trop de demandes", "Too many requests"),
    "INTERNAL": Kind(500, "Une erreur de notre côté", "A fault on our side"),
    "DATA_LOSS": Kind(500, "Une donnée enregistrée est illisible", "Stored data can't be read"),
    "UNAVAILABLE": Kind(503, "Le service ne répond pas ; réessayez", "The service doesn't answer; try again"),
    "SHUTTING_DOWN": Kind(503, "Le service redémarre ; réessayez", "The service is restarting; try again"),
}

# What a code means when its reason isn't in the table above.
CODES: Mapping[grpc.StatusCode, str] = {
    grpc.StatusCode.INVALID_ARGUMENT: "INVALID_ARGUMENT",
    grpc.StatusCode.OUT_OF_RANGE: "INVALID_ARGUMENT",
    grpc.StatusCode.NOT_FOUND: "NOT_FOUND",
    grpc.StatusCode.ALREADY_EXISTS: "ID_TAKEN",
    grpc.StatusCode.FAILED_PRECONDITION: "RUN_CLOSED",
    grpc.StatusCode.PERMISSION_DENIED: "FORBIDDEN",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "RESOURCE_EXHAUSTED",
    grpc.StatusCode.UNAVAILABLE: "UNAVAILABLE",
    grpc.StatusCode.DEADLINE_EXCEEDED: "UNAVAILABLE",
    grpc.StatusCode.CANCELLED: "UNAVAILABLE",
    grpc.StatusCode.DATA_LOSS: "DATA_LOSS",
}

STATUSES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
}


class Refused(HTTPException):
    """The gateway itself refuses a request, for a reason of the table."""

    def __init__(self, reason: str, detail: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(REASONS[reason].status, detail, headers)
        self.reason = reason


def title(reason: str, locale: Locale) -> str:
    """What people read first about a reason."""
    kind = REASONS[reason]
    return kind.en if locale == "en" else kind.fr


def reason_of(error: RemoteError) -> str:
    """The table's reason for what a service answered."""
    if error.code is grpc.StatusCode.UNAUTHENTICATED:
        # The user was verified at the door: it is our own token that was refused, and signing in again won't help.
        return "INTERNAL"
    if error.reason in REASONS:
        return error.reason
    return CODES.get(error.code, "INTERNAL")


def problem(
    reason: str,
    locale: Locale,
    detail: str = "",
    errors: Sequence[Mapping[str, str]] = (),
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    """The document as a response; `more` are members beside those of the standard."""
    kind = REASONS[reason]
    document: dict[str, Any] = {
        "type": f"urn:lintello:problem:{reason.lower().replace('_', '-')}",
        "title": title(reason, locale),
        "status": kind.status,
        "detail": detail or None,
        "reason": reason,
        "errors": list(errors[:MAX_ERRORS]),
    }
    sent = dict(headers or {})
    if kind.status == 401:
        sent.setdefault("WWW-Authenticate", "Bearer")
    if kind.status == 503:
        sent.setdefault("Retry-After", str(RETRY_SECONDS))
    return Response(orjson.dumps(document | more), kind.status, sent, MEDIA_TYPE)


def remote_problem(error: RemoteError, locale: Locale, **more: Any) -> Response:
    """What a service refused, for the outside. Its words go out only where they are about the request.

    `more` are members beside those of the standard.
    """
    reason = reason_of(error)
    ours = error.reason in REASONS and REASONS[reason].status < 500
    errors = [{"field": name, "message": message} for name, message in error.fields.items()]
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    return problem(reason, locale, error.message if ours else "", errors if ours else (), headers, **more)


async def on_remote(request: Request, error: Exception) -> Response:
    """Handle RemoteError."""
    assert isinstance(error, RemoteError)
    if REASONS[reason_of(error)].status == 500:
        telemetry.log.error("remote_fault", code=error.code.name, reason=error.reason)
    return remote_problem(error, locale_of(request))


async def on_invalid(request: Request, error: Exception) -> Response:
    """Handle kit's InvalidField and TooLarge."""
    assert isinstance(error, InvalidField)
    reason = "TOO_LARGE" if isinstance(error, TooLarge) else "INVALID_ARGUMENT"
    errors = [{"field": error.name, "message": error.problem}]
    return problem(reason, locale_of(request), str(error), errors)


async def on_not_verified(request: Request, error: Exception) -> Response:
    """Handle NotVerified."""
    given = "authorization" in request.headers
    headers = {"WWW-Authenticate": 'Bearer error="invalid_token"' if given else "Bearer"}
    return problem("UNAUTHENTICATED", locale_of(request), str(error), headers=headers)


async def on_http(request: Request, error: Exception) -> Response:
    """Handle what the framework or the gateway refuses: 404, 405, a body that can't be read …"""
    assert isinstance(error, HTTPException)
    locale = locale_of(request)
    if isinstance(error, Refused):
        return problem(error.reason, locale, error.detail, headers=error.headers)
    return problem(STATUSES.get(error.status_code, "INTERNAL"), locale, headers=error.headers)


async def on_validation(request: Request, error: Exception) -> Response:
    """Handle a body or a query that doesn't fit its model."""
    assert isinstance(error, RequestValidationError)
    locale = locale_of(request)
    errors = [
        {"field": ".".join(str(part)[:100] for part in found["loc"][1:]), "message": validation_message(found, locale)}
        for found in error.errors()
    ]
    return problem("INVALID_ARGUMENT", locale, errors=errors)


async def on_fault(request: Request, error: Exception) -> Response:
    """Handle what nothing else does: logged by type and frames, answered without a word of it."""
    telemetry.fault("request_failed", error, method=request.method)
    return problem("INTERNAL", locale_of(request))
