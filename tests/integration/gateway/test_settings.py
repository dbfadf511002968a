"""A start that is refused: one line that names what is wrong, exit code 2."""

import pytest

from tests.integration.gateway.backend import Backend
from tests.integration.gateway.conftest import SECRET
from tests.integration.gateway.process import Gateway, gateway, settings_for
from tests.servers.identity import Keys
from tests.servers.process import refused


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"GATEWAY_HOST": "0.0.0.0"}, "LINTELLO_GATEWAY_HOST: "),
        ({"AUTH_MODE": "jwt"}, "LINTELLO_AUTH_MODE: "),
        ({"AUTH_MODE": "open"}, "LINTELLO_AUTH_MODE: "),
        ({"JWT_SECRET": "short"}, "LINTELLO_JWT_SECRET: "),
        ({"JWT_SECRET": SECRET, "JWT_JWKS_URL": "https://x.example/keys"}, "LINTELLO_JWT_SECRET: "),
        ({"JWT_JWKS_URL": "http://x.example/keys"}, "LINTELLO_JWT_JWKS_URL: "),
        ({"INTERNAL_KEY": "gateway:short"}, "LINTELLO_INTERNAL_KEY: "),
        ({"GATEWAY_PORT": "0"}, "LINTELLO_GATEWAY_PORT: "),
        ({"GATEWAY_PROT": "8080"}, "did you mean LINTELLO_GATEWAY_PORT?"),
    ],
    ids=lambda value: "",
)
async def test_a_bad_setting_stops_the_start_with_one_line(
    services: Backend, identity: Keys, changes: dict[str, str], named: str
) -> None:
    code, output = await refused("gateway", settings_for(services, identity.gateway) | changes)
    assert code == 2
    assert named in output
    assert len(output.strip().splitlines()) == 1


async def test_a_secret_that_is_too_short_is_not_quoted(services: Backend, identity: Keys) -> None:
    _, output = await refused("gateway", settings_for(services, identity.gateway, JWT_SECRET="hunter2"))
    assert "hunter2" not in output


async def test_the_engines_key_is_not_taken_for_the_gateways(services: Backend, identity: Keys) -> None:
    code, output = await refused("gateway", settings_for(services, identity.engine))
    assert (code, "LINTELLO_INTERNAL_KEY: " in output) == (2, True)


async def test_a_port_that_is_taken_is_named(services: Backend, identity: Keys, dev_gateway: Gateway) -> None:
    code, output = await refused(
        "gateway", settings_for(services, identity.gateway) | {"GATEWAY_PORT": str(dev_gateway.port)}
    )
    assert (code, f"127.0.0.1:{dev_gateway.port}" in output) == (2, True)


async def test_it_starts_before_the_services_do(identity: Keys) -> None:
    nowhere = {"ENGINE_ADDRESS": "127.0.0.1:1", "TREESTORE_ADDRESS": "127.0.0.1:1", "QUOTA_ADDRESS": "127.0.0.1:1"}
    settings = settings_for(Backend(None, None, ""), identity.gateway) | nowhere  # type: ignore[arg-type]
    async with gateway(settings) as running, running.client() as client:
        assert (await client.get("/readyz")).json()["not_ready"] == ["engine", "treestore", "quota"]
