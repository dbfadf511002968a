"""`lintello token` and what other commands refuse."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from cli.local.folder import open_folder
from cli.local.keys import create_missing_keys, read_keys
from kit.identity import Verifier
from tests.integration.cli.command import lintello

USER = ("--user", "ada", "--subscription", "pro")


def claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return decoded


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    create_missing_keys(open_folder(tmp_path))
    return tmp_path


async def test_a_user_token_is_signed_with_the_folder_s_secret(folder: Path) -> None:
    ended = await lintello("token", *USER, "--admin", "--minutes", "5", "--data-dir", str(folder))
    secret = OctKey.import_key(read_keys(open_folder(folder)).jwt_secret)
    told = jwt.decode(ended.output.strip(), secret, algorithms=["HS256"]).claims
    assert (told["sub"], told["subscription"], told["roles"]) == ("ada", "pro", ["admin"])
    assert told["exp"] - told["iat"] == 300


async def test_without_admin_there_is_no_role(folder: Path) -> None:
    ended = await lintello("token", *USER, "--data-dir", str(folder))
    assert claims(ended.output)["roles"] == []


async def test_in_jwt_mode_the_given_secret_signs() -> None:
    secret = "s" * 40
    ended = await lintello("token", *USER, settings={"LINTELLO_AUTH_MODE": "jwt", "LINTELLO_JWT_SECRET": secret})
    assert jwt.decode(ended.output.strip(), OctKey.import_key(secret), algorithms=["HS256"]).claims["sub"] == "ada"


async def test_in_jwt_mode_a_missing_secret_is_wrong_usage() -> None:
    ended = await lintello("token", *USER, settings={"LINTELLO_AUTH_MODE": "jwt"})
    assert (ended.code, ended.output, ended.errors) == (2, "", "LINTELLO_JWT_SECRET : manque\n")


async def test_an_internal_token_speaks_for_the_user_to_one_service(folder: Path) -> None:
    ended = await lintello("token", *USER, "--service", "quota", "--data-dir", str(folder))
    keys = read_keys(open_folder(folder))
    caller = Verifier(keys.internal_public_keys, "quota").verify(ended.output.strip())
    assert (caller.user, caller.subscription, caller.actor) == ("ada", "pro", "gateway")


async def test_the_lifetime_of_an_internal_token_cannot_be_chosen(folder: Path) -> None:
    ended = await lintello("token", *USER, "--service", "quota", "--minutes", "5", "--data-dir", str(folder))
    assert (ended.code, len(ended.errors.splitlines())) == (2, 1)


async def test_a_key_given_that_is_none_is_named_and_not_quoted(folder: Path) -> None:
    ended = await lintello(
        "token", *USER, "--service", "quota", settings={"LINTELLO_INTERNAL_KEY": "gateway:n0tbase64"}
    )
    assert (ended.code, "LINTELLO_INTERNAL_KEY" in ended.errors, "n0tbase64" in ended.errors) == (2, True, False)


async def test_a_folder_without_keys_says_how_to_get_them(tmp_path: Path) -> None:
    ended = await lintello("token", *USER, "--data-dir", str(tmp_path))
    assert (ended.code, str(tmp_path) in ended.errors, list(tmp_path.iterdir())) == (1, True, [])


async def test_a_user_must_be_named() -> None:
    ended = await lintello("token", "--subscription", "pro")
    assert (ended.code, len(ended.errors.splitlines()), "--user" in ended.errors) == (2, 1, True)


async def test_serve_knows_four_services() -> None:
    ended = await lintello("serve", "kitchen")
    assert (ended.code, len(ended.errors.splitlines())) == (2, 1)


@pytest.mark.parametrize("service", ["engine", "treestore", "quota", "gateway"])
async def test_serve_without_settings_ends_with_the_service_s_own_line(service: str) -> None:
    ended = await lintello("serve", service)
    assert (ended.code, len(ended.errors.splitlines()), "LINTELLO_" in ended.errors) == (2, 1, True)
