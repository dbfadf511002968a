"""One-run tokens: what `events_url` opens with a bare GET, and what it doesn't."""

from collections.abc import AsyncIterator

import httpx
import pytest

from gateway.run_tokens import RunTokens
from gateway.tokens import mint_user_token
from kit.identity import Caller
from tests.integration.gateway.backend import Backend
from tests.integration.gateway.conftest import SECRET
from tests.integration.gateway.process import Gateway, gateway, settings_for
from tests.integration.gateway.reading import parse
from tests.integration.gateway.scripts import CLASSIC, CONVERSATION, RUN, plays
from tests.servers.identity import Keys

EVENTS = f"/api/runs/{RUN}/events"
ADA = Caller("ada", "pro", frozenset({"admin"}))


@pytest.fixture(scope="session", params=["dev", "jwt"])
async def either_gateway(services: Backend, identity: Keys, request: pytest.FixtureRequest) -> AsyncIterator[Gateway]:
    """A gateway in each of the two modes."""
    settings = settings_for(services, identity.gateway, AUTH_MODE=request.param, JWT_SECRET=SECRET)
    async with gateway(settings) as running:
        yield running


@pytest.fixture
async def bare(either_gateway: Gateway, behind: Backend) -> AsyncIterator[httpx.AsyncClient]:
    """A client that sends no headers of its own, as EventSource doesn't."""
    behind.engine.script = behind.engine.watched = plays(*CLASSIC)
    async with either_gateway.client() as client:
        yield client


@pytest.fixture
def token(identity: Keys) -> str:
    """Ada's token for the run."""
    return RunTokens(identity.gateway).mint(RUN, ADA)


async def begin(client: httpx.AsyncClient) -> str:
    ada = {"Authorization": f"Bearer {mint_user_token(SECRET, 'ada', 'pro', ['admin'])}"}
    url: str = (await client.post("/api/runs", json={"message": "?"}, headers=ada)).json()["events_url"]
    return url


async def test_events_url_works_with_a_bare_get(bare: httpx.AsyncClient) -> None:
    response = await bare.get(await begin(bare))
    assert [event["seq"] for event in parse(response.text)] == [1, 2, 3, 4]


async def test_events_url_speaks_for_its_user_without_their_roles(bare: httpx.AsyncClient, behind: Backend) -> None:
    await bare.get(await begin(bare))
    assert behind.engine.asked[-1][0] == Caller("ada", "pro", actor="gateway")


async def test_events_url_takes_the_number_that_a_browser_adds_when_it_comes_back(bare: httpx.AsyncClient) -> None:
    response = await bare.get(await begin(bare), headers={"Last-Event-ID": "3"})
    assert [event["seq"] for event in parse(response.text)] == [4]


async def test_a_token_of_another_run_is_401(bare: httpx.AsyncClient, behind: Backend, token: str) -> None:
    response = await bare.get(f"/api/runs/{CONVERSATION}/events?token={token}")
    assert (response.status_code, behind.engine.asked) == (401, [])


@pytest.mark.parametrize("odd", ["", "x", "a.b.c", "é", "x" * 5000])
async def test_a_token_that_is_none_is_401(bare: httpx.AsyncClient, odd: str) -> None:
    assert (await bare.get(EVENTS, params={"token": odd})).status_code == 401


async def test_two_tokens_are_none(bare: httpx.AsyncClient, token: str) -> None:
    assert (await bare.get(f"{EVENTS}?token={token}&token={token}")).status_code == 401


async def test_a_one_run_token_is_nobody_in_a_header(bare: httpx.AsyncClient, token: str) -> None:
    for path in (EVENTS, "/api/me"):
        assert (await bare.get(path, headers={"Authorization": f"Bearer {token}"})).status_code == 401


async def test_a_one_run_token_opens_nothing_else(either_gateway: Gateway, bare: httpx.AsyncClient, token: str) -> None:
    known = (await bare.get("/api/me")).status_code
    for path in ("/api/me", "/api/runs", f"/api/conversations/{CONVERSATION}"):
        response = await bare.get(path, params={"token": token})
        assert "ada" not in response.text
        assert response.status_code == 401 or known == 200


@pytest.mark.parametrize("kind", ["user", "internal"])
async def test_another_kind_of_token_is_none_in_the_query(bare: httpx.AsyncClient, identity: Keys, kind: str) -> None:
    other = mint_user_token(SECRET, "ada", "pro") if kind == "user" else identity.gateway_signer.mint("engine", ADA)
    assert (await bare.get(EVENTS, params={"token": other})).status_code == 401


async def test_a_token_is_never_logged(either_gateway: Gateway, bare: httpx.AsyncClient, token: str) -> None:
    await bare.get(await begin(bare))
    await bare.get(EVENTS, params={"token": token})
    await bare.get(f"/api/runs/{CONVERSATION}/events", params={"token": token})
    parts = token.split(".")[1:]
    assert either_gateway.lines
    assert not any(part in line for line in either_gateway.lines for part in parts)
    assert not any("token=" in line for line in either_gateway.lines)
