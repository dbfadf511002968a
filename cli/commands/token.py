"""`lintello token`: a user's token for the gateway, or an internal one for a gRPC service."""

import os
from pathlib import Path

from joserfc.errors import JoseError

from cli.commands.failure import WRONG_USAGE, Failure
from cli.commands.settings import bad_settings_reported, check_settings, setting
from cli.local.errors import KeyMissing
from cli.local.folder import DataFolder, choose_path
from cli.local.keys import Keys, read_keys
from cli.texts import say
from gateway.tokens import mint_user_token
from kit.identity import FRONT, Caller, Signer

MINUTES = 60


def token(
    user: str, subscription: str, admin: bool, service: str | None, data_dir: Path | None, minutes: int | None
) -> str:
    """The token. Raises Failure when there is nothing to sign it with."""
    check_settings()
    if service is None:
        return user_token(_jwt_secret(data_dir), user, subscription, admin, minutes or MINUTES)
    if minutes is not None:
        raise Failure(say("usage.minutes"), WRONG_USAGE)
    key = setting("INTERNAL_KEY") or _folder_keys(data_dir).internal_keys[FRONT]
    with bad_settings_reported():
        return Signer(key).mint(service, Caller(user, subscription, frozenset(_roles(admin))))


def user_token(secret: str, user: str, subscription: str, admin: bool, minutes: int) -> str:
    """A user's token for the gateway. Raises Failure when the secret can't sign one."""
    audience = setting("JWT_AUDIENCE") or "lintello"
    try:
        return mint_user_token(secret, user, subscription, _roles(admin), audience, minutes * 60)
    except (JoseError, ValueError):
        raise Failure(say("failed.secret"), WRONG_USAGE) from None


def _roles(admin: bool) -> tuple[str, ...]:
    return ("admin",) if admin else ()


def _jwt_secret(data_dir: Path | None) -> str:
    if secret := setting("JWT_SECRET"):
        return secret
    if setting("AUTH_MODE") == "jwt":
        name = "usage.jwks" if setting("JWT_JWKS_URL") else "usage.missing"
        raise Failure(say(name, name="LINTELLO_JWT_SECRET"), WRONG_USAGE)
    return _folder_keys(data_dir).jwt_secret


def _folder_keys(data_dir: Path | None) -> Keys:
    folder = DataFolder(choose_path(data_dir, os.environ))
    try:
        return read_keys(folder)
    except (KeyMissing, NotADirectoryError, PermissionError):
        raise Failure(say("failed.no_keys", path=folder.path)) from None
