"""Who asks: only a verified token says it, or dev mode on this machine."""

import base64
import hmac
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from gateway.tokens import mint_user_token
from kit.identity import Caller
from tests.integration.gateway.backend import Backend
from tests.integration.gateway.conftest import SECRET
from tests.integration.gateway.process import Gateway, gateway, settings_for
from tests.servers.identity import Keys
from tests.servers.raw import RawServer, raw_server, response

NOW = int(time.time())
CLAIMS: dict[str, Any] = {"sub": "u-1", "aud": "lintello", "exp": NOW + 600, "subscription": "pro", "roles": ["r"]}
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
OKP = OKPKey.generate_key("Ed25519", {"kid": "okp"})
PUBLIC_PEM = RSA.as_pem(private=False).decode()


def signed(key: Any, alg: str, claims: dict[str, Any] = CLAIMS, **header: str) -> str:
    return jwt.encode({"alg": alg, **header}, claims, key, algorithms=[alg])


def secret_token(**changes: Any) -> str:
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not None}
    return signed(OctKey.import_key(SECRET), "HS256", claims)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="session")
async def jwt_gateway(services: Backend, identity: Keys) -> AsyncIterator[Gateway]:
    async with gateway(settings_for(services, identity.gateway, AUTH_MODE="jwt", JWT_SECRET=SECRET)) as running:
        yield running


@pytest.fixture
async def strict(jwt_gateway: Gateway, behind: Backend) -> AsyncIterator[httpx.AsyncClient]:
    async with jwt_gateway.client() as client:
        yield client


@pytest.fixture(scope="session")
async def issuer() -> AsyncIterator[RawServer]:
    async with raw_server() as server:
        server.play(response(jwks(RSA, EC, OKP)))
        yield server


@pytest.fixture(scope="session")
async def jwks_gateway(services: Backend, identity: Keys, issuer: RawServer) -> AsyncIterator[Gateway]:
    settings = settings_for(services, identity.gateway, AUTH_MODE="jwt", JWT_JWKS_URL=issuer.base_url)
    async with gateway(settings) as running:
        yield running


@pytest.fixture
async def federated(jwks_gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    async with jwks_gateway.client() as client:
        yield client


def jwks(*keys: Any) -> bytes:
    return orjson.dumps({"keys": [key.as_dict(private=False) for key in keys]})


async def test_dev_mode_without_a_token_is_the_demo_user(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/me")).json() == {
        "user": "demo",
        "subscription": "lintello",
        "roles": ["admin"],
        "locale": "en",
        "trial_model": False,
    }


async def test_dev_mode_with_a_token_is_the_tokens_user(client: httpx.AsyncClient) -> None:
    token = mint_user_token(SECRET, "ada", "pro", ["editor"])
    me = (await client.get("/api/me", headers=bearer(token))).json()
    assert (me["user"], me["subscription"], me["roles"]) == ("ada", "pro", ["editor"])


async def test_dev_mode_with_a_bad_token_is_401(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/me", headers=bearer("x.y.z"))).status_code == 401


@pytest.mark.parametrize("header", ["Basic ZGVtbzpkZW1v", "Bearer", "", "token"])
async def test_dev_mode_with_another_scheme_is_401(client: httpx.AsyncClient, header: str) -> None:
    assert (await client.get("/api/me", headers={"Authorization": header})).status_code == 401


async def test_the_services_see_the_user_through_the_gateways_own_token(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    await client.get("/api/modes", headers=bearer(secret_token()))
    assert behind.engine.asked[0][0] == Caller("u-1", "pro", frozenset({"r"}), actor="gateway")


async def test_forged_headers_never_become_identity(client: httpx.AsyncClient, behind: Backend) -> None:
    forged = {"X-User": "root", "X-Forwarded-User": "root", "X-LintellO-Sub": "root", "Act": "engine"}
    await client.get("/api/modes", headers=forged)
    assert behind.engine.asked[0][0] == Caller("demo", "lintello", frozenset({"admin"}), actor="gateway")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""]
)
async def test_dev_mode_refuses_another_host(client: httpx.AsyncClient, dev_gateway: Gateway, host: str) -> None:
    headers = {"Host": host.format(port=dev_gateway.port)}
    assert (await client.get("/api/me", headers=headers)).status_code == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
async def test_dev_mode_refuses_another_origin(client: httpx.AsyncClient, origin: str) -> None:
    response = await client.post("/api/conversations", json={}, headers={"Origin": origin})
    assert (response.status_code, response.json()["reason"]) == (403, "FORBIDDEN")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_dev_mode_takes_its_own_page(client: httpx.AsyncClient, dev_gateway: Gateway, name: str) -> None:
    host = f"{name}:{dev_gateway.port}"
    assert (await client.get("/api/me", headers={"Host": host, "Origin": f"http://{host}"})).status_code == 200


async def test_jwt_mode_without_a_token_is_401_and_says_how(strict: httpx.AsyncClient) -> None:
    response = await strict.get("/api/me")
    assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
    assert response.json()["reason"] == "UNAUTHENTICATED"


async def test_a_token_signed_with_the_secret_is_taken(strict: httpx.AsyncClient) -> None:
    assert (await strict.get("/api/me", headers=bearer(secret_token()))).json()["user"] == "u-1"


async def test_a_token_without_a_subscription_is_on_the_free_one(strict: httpx.AsyncClient) -> None:
    me = (await strict.get("/api/me", headers=bearer(secret_token(subscription=None, roles=None)))).json()
    assert (me["subscription"], me["roles"]) == ("gratuit", [])


async def test_an_audience_among_several_is_taken(strict: httpx.AsyncClient) -> None:
    token = secret_token(aud=["other", "lintello"])
    assert (await strict.get("/api/me", headers=bearer(token))).status_code == 200


def unsigned() -> str:
    _, body, _ = secret_token().split(".")
    return f"eyJhbGciOiJub25lIn0.{body}."


@pytest.mark.parametrize(
    "token",
    [
        unsigned(),
        secret_token(exp=NOW - 60),
        secret_token(exp=None),
        secret_token(exp="soon"),
        secret_token(nbf=NOW + 3600),
        secret_token(aud="other"),
        secret_token(aud=None),
        secret_token(sub=None),
        secret_token(sub=""),
        secret_token(sub="u" * 201),
        secret_token(sub="u\u0000"),
        secret_token(sub=7),
        secret_token(roles="admin"),
        secret_token(roles=[{"admin": True}]),
        secret_token(subscription=["pro"]),
        signed(OctKey.import_key("o" * 32), "HS256"),
        signed(OctKey.import_key(SECRET * 2), "HS512"),
        signed(RSA, "RS256"),
        secret_token()[:-2],
        secret_token() + ".x.y",
        "é.é.é",
        "a" * 100_000,
    ],
    ids=lambda _: "",
)
async def test_a_token_that_is_not_in_order_is_401(strict: httpx.AsyncClient, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}".encode()}
    response = await strict.get("/api/me", headers=headers)  # type: ignore[arg-type]
    assert response.status_code in ((401,) if len(token) < 60_000 else (400, 401, 431))


async def test_two_tokens_are_none(strict: httpx.AsyncClient) -> None:
    headers = [("Authorization", f"Bearer {secret_token()}"), ("Authorization", f"Bearer {secret_token()}")]
    assert (await strict.get("/api/me", headers=headers)).status_code == 401


async def test_the_open_pages_need_no_token(strict: httpx.AsyncClient) -> None:
    paths = ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/")
    assert [(await strict.get(path)).status_code for path in paths] == [200] * 6


async def test_jwt_mode_answers_under_any_name(strict: httpx.AsyncClient) -> None:
    headers = bearer(secret_token()) | {"Host": "chat.example"}
    assert (await strict.get("/api/me", headers=headers)).status_code == 200


@pytest.mark.parametrize(("key", "alg"), [(RSA, "RS256"), (EC, "ES256"), (OKP, "Ed25519")])
async def test_a_token_of_the_issuers_key_is_taken(federated: httpx.AsyncClient, key: Any, alg: str) -> None:
    me = await federated.get("/api/me", headers=bearer(signed(key, alg, kid=key.kid)))
    assert me.json()["user"] == "u-1"


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
async def test_the_older_name_of_ed25519_is_taken(federated: httpx.AsyncClient) -> None:
    token = signed(OKP, "EdDSA", kid="okp")
    assert (await federated.get("/api/me", headers=bearer(token))).status_code == 200


def swapped() -> str:
    """HS256 with the issuer's public key, which everybody knows, as its secret; made by hand, as an attacker would."""
    signed_part = ".".join(base64url(orjson.dumps(part)) for part in ({"alg": "HS256", "kid": "rsa"}, CLAIMS))
    signature = hmac.digest(PUBLIC_PEM.encode(), signed_part.encode(), "sha256")
    return f"{signed_part}.{base64url(signature)}"


def base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "token",
    [
        swapped(),
        signed(OctKey.import_key(SECRET), "HS256", kid="rsa"),
        signed(RSA, "RS256"),
        signed(RSA, "RS256", kid="ec"),
        signed(RSAKey.generate_key(2048), "RS256", kid="rsa"),
        signed(RSA, "RS512", kid="rsa"),
        signed(RSA, "RS256", kid="unknown"),
    ],
    ids=["public key as secret", "secret", "no kid", "kid of another kind", "other key", "other algorithm", "unknown"],
)
async def test_a_token_that_the_issuer_did_not_sign_is_401(federated: httpx.AsyncClient, token: str) -> None:
    assert (await federated.get("/api/me", headers=bearer(token))).status_code == 401


async def test_tokens_of_unknown_keys_do_not_flood_the_issuer(federated: httpx.AsyncClient, issuer: RawServer) -> None:
    for _ in range(5):
        await federated.get("/api/me", headers=bearer(signed(RSA, "RS256", kid="unknown")))
    assert len(issuer.requests) <= 2
