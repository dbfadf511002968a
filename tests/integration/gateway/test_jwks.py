"""An issuer's keys: fetched when needed, kept ten minutes, fetched again for a new name."""

from collections.abc import AsyncIterator

import orjson
import pytest
from joserfc.jwk import OKPKey

from gateway.jwks import PublicKeys
from kit.errors import RemoteError
from kit.identity import NotVerified
from tests.servers.raw import RawServer, Script, raw_server, response


def keys_named(*names: str) -> Script:
    keys = [OKPKey.generate_key("Ed25519", {"kid": name}).as_dict(private=False) for name in names]
    return response(orjson.dumps({"keys": keys}))


class Clock:
    """Seconds, as the test says."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def issuer() -> AsyncIterator[RawServer]:
    async with raw_server() as server:
        server.play(keys_named("a"))
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(issuer: RawServer, clock: Clock) -> PublicKeys:
    return PublicKeys(issuer.base_url, clock)


async def test_nothing_is_fetched_before_a_token_comes(issuer: RawServer, keys: PublicKeys) -> None:
    assert issuer.requests == []


async def test_keys_are_fetched_once_for_many_tokens(issuer: RawServer, keys: PublicKeys) -> None:
    for _ in range(3):
        await keys.find("a")
    assert len(issuer.requests) == 1


async def test_keys_are_fetched_again_after_ten_minutes(issuer: RawServer, keys: PublicKeys, clock: Clock) -> None:
    await keys.find("a")
    clock.now += 601
    await keys.find("a")
    assert len(issuer.requests) == 2


async def test_a_key_that_was_taken_back_is_not_found_after_ten_minutes(
    issuer: RawServer, keys: PublicKeys, clock: Clock
) -> None:
    await keys.find("a")
    issuer.play(keys_named("b"))
    clock.now += 601
    with pytest.raises(NotVerified):
        await keys.find("a")


async def test_a_new_key_is_found_at_once(issuer: RawServer, keys: PublicKeys, clock: Clock) -> None:
    await keys.find("a")
    issuer.play(keys_named("a", "b"))
    clock.now += 11
    await keys.find("b")
    assert len(issuer.requests) == 2


async def test_an_unknown_name_is_asked_for_once(issuer: RawServer, keys: PublicKeys) -> None:
    for _ in range(3):
        with pytest.raises(NotVerified):
            await keys.find("unknown")
    assert len(issuer.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [response(b"no", "500 Internal Server Error"), response(b"{"), response(b"{}"), response(b"[]")],
    ids=["500", "not JSON", "no keys", "not an object"],
)
async def test_an_issuer_that_fails_makes_us_unavailable_and_not_the_token_wrong(
    issuer: RawServer, keys: PublicKeys, answer: Script
) -> None:
    issuer.play(answer)
    with pytest.raises(RemoteError) as refusal:
        await keys.find("a")
    assert refusal.value.reason == "UNAVAILABLE"


async def test_an_issuer_that_redirects_is_not_followed(issuer: RawServer, keys: PublicKeys) -> None:
    issuer.play(response(b"", "302 Found", location="http://127.0.0.1:1/keys"), keys_named("a"))
    with pytest.raises(RemoteError):
        await keys.find("a")
