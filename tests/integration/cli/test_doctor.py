"""`lintello doctor` with servers given, and model servers of several kinds."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from cli.local.folder import open_folder
from cli.local.ports import LOOPBACK, free_port
from cli.local.state import State, write_state
from tests.integration.cli.command import Outcome, lintello


@asynccontextmanager
async def model_server(status: int, *names: str) -> AsyncIterator[str]:
    """A model server that lists these models; its base URL."""

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": name} for name in names]}, status=status)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, 0).start()
        yield f"http://{LOOPBACK}:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def examine(folder: Path, **settings: str) -> tuple[Outcome, dict[str, str]]:
    """The outcome, and the lines of the report by what they are about."""
    given = {f"LINTELLO_{name}": value for name, value in settings.items()}
    ended = await lintello("doctor", "--data-dir", str(folder), settings=given)
    lines = [line.split(" · ", 1) for line in ended.output.splitlines()]
    return ended, {rest.split(" : ", 1)[0]: f"{state}: {rest.split(' : ', 1)[1]}" for state, rest in lines}


async def test_a_fresh_machine_needs_nothing(tmp_path: Path) -> None:
    ended, report = await examine(tmp_path / "data")
    assert (ended.code, ended.errors) == (0, "")
    assert report["modèle"].startswith("attention: modèle d'essai")
    assert report["pile"].startswith("info: aucune en marche")


async def test_looking_makes_no_folder(tmp_path: Path) -> None:
    await examine(tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


async def test_servers_given_are_asked(tmp_path: Path, database_url: str, redis_url: str) -> None:
    ended, report = await examine(tmp_path, DATABASE_URL=database_url, REDIS_URL=redis_url)
    assert ended.code == 0
    assert report["base de données"] == "ok: LINTELLO_DATABASE_URL répond"
    assert report["redis"] == "ok: LINTELLO_REDIS_URL répond"


@pytest.mark.parametrize(
    ("name", "matter", "url"),
    [
        ("DATABASE_URL", "base de données", "postgresql://u:s3cret@127.0.0.1:9/x"),
        ("DATABASE_URL", "base de données", "postgresql://u:s3cret@h:port/x"),
        ("REDIS_URL", "redis", "redis://u:s3cret@127.0.0.1:9"),
        ("REDIS_URL", "redis", "http://u:s3cret@127.0.0.1"),
    ],
)
async def test_a_server_that_does_not_answer_fails_without_its_password(
    tmp_path: Path, name: str, matter: str, url: str
) -> None:
    ended, report = await examine(tmp_path, **{name: url})
    assert (ended.code, report[matter].startswith("échec")) == (1, True)
    assert "s3cret" not in ended.output + ended.errors


async def test_the_usual_names_serve_where_they_are_listed(tmp_path: Path) -> None:
    async with model_server(200, "other", "mistral-small-latest") as url:
        ended, report = await examine(tmp_path, LLM_BASE_URL=url)
    assert ended.code == 0
    assert report["modèle small"] == "ok: mistral-small-latest (nom habituel chez le fournisseur)"
    assert report["modèle large"] == "attention: other (faute de nom donné : le premier proposé)"


async def test_a_name_given_that_is_not_listed_is_a_warning(tmp_path: Path) -> None:
    async with model_server(200, "a", "b") as url:
        _, report = await examine(tmp_path, LLM_BASE_URL=url, MODEL_SMALL="b", MODEL_LARGE="c")
    assert report["modèle small"] == "ok: b (donné)"
    assert report["modèle large"].startswith("attention: c (donné, mais absent")


async def test_a_server_that_lists_nothing_is_only_a_warning(tmp_path: Path) -> None:
    async with model_server(404) as url:
        ended, report = await examine(tmp_path, LLM_BASE_URL=url)
    assert (ended.code, report["modèle"].startswith("attention")) == (0, True)


@pytest.mark.parametrize("status", [401, 500])
async def test_a_model_server_that_refuses_fails_and_no_key_is_shown(tmp_path: Path, status: int) -> None:
    async with model_server(status) as url:
        ended, report = await examine(tmp_path, LLM_BASE_URL=url, LLM_API_KEY="k3y-value")
    assert (ended.code, report["modèle"].startswith("échec")) == (1, True)
    assert "k3y-value" not in ended.output + ended.errors


@pytest.mark.parametrize(
    "url", ["http://u:s3cret@127.0.0.1:9/v1", "nowhere-s3cret", "ftp://s3cret/v1", "http://s3cret:x"]
)
async def test_a_model_address_that_cannot_be_used_fails_and_is_not_shown(tmp_path: Path, url: str) -> None:
    ended, report = await examine(tmp_path, LLM_BASE_URL=url)
    assert (ended.code, report["modèle"].startswith("échec")) == (1, True)
    assert "s3cret" not in ended.output + ended.errors


async def test_a_misspelt_setting_fails_and_is_named(tmp_path: Path) -> None:
    ended, report = await examine(tmp_path, LLM_BASEURL="x")
    assert ended.code == 1
    assert "LINTELLO_LLM_BASEURL" in report["réglages"]


async def test_jwt_without_a_way_to_verify_fails(tmp_path: Path) -> None:
    ended, report = await examine(tmp_path, AUTH_MODE="jwt")
    assert (ended.code, report["accès"].startswith("échec")) == (1, True)


async def test_a_lost_key_fails(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    ended, report = await examine(tmp_path)
    assert (ended.code, report["clé de chiffrement"].startswith("échec")) == (1, True)


async def test_each_process_of_a_service_that_does_not_answer_fails_by_its_own_name(tmp_path: Path) -> None:
    gateways = {name: f"http://{LOOPBACK}:{free_port()}" for name in ("gateway", "gateway-2")}
    addresses = {name: f"{LOOPBACK}:{free_port()}" for name in ("engine", "engine-2")}
    write_state(open_folder(tmp_path), State(os.getpid(), gateways, addresses, {}, False))
    ended, report = await examine(tmp_path)
    assert ended.code == 1
    assert report["passerelle 2"] == f"échec: ne répond pas à {gateways['gateway-2'].removeprefix('http://')}"
    assert report["moteur 2"] == f"échec: ne répond pas à {addresses['engine-2']}"
