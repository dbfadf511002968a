"""Addresses of other services: one, a target of gRPC's, or one for each replica."""

import pytest

from kit.channel import target
from kit.settings import BadSetting

SETTING = "LINTELLO_ENGINE_ADDRESS"


@pytest.mark.parametrize("address", ["127.0.0.1:50051", "engine:50051", "dns:///engine:50051", "[::1]:50051"])
def test_one_address_is_left_to_grpc(address: str) -> None:
    assert target(address, SETTING) == address


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("10.0.0.1:50051,10.0.0.2:50052", "ipv4:10.0.0.1:50051,10.0.0.2:50052"),
        ("10.0.0.1:50051, 10.0.0.2:50051", "ipv4:10.0.0.1:50051,10.0.0.2:50051"),
        ("localhost:50051,localhost:50061", "ipv4:127.0.0.1:50051,127.0.0.1:50061"),
        ("[::1]:50051,[::1]:50061", "ipv6:[::1]:50051,[::1]:50061"),
    ],
)
def test_several_addresses_are_one_target(address: str, name: str) -> None:
    assert target(address, SETTING) == name


@pytest.mark.parametrize(
    "address",
    [
        "engine:50051,engine:50052",
        "10.0.0.1:50051,",
        "10.0.0.1,10.0.0.2",
        "10.0.0.1:50051,10.0.0.2:0",
        "10.0.0.1:50051,10.0.0.2:65536",
        "10.0.0.1:50051,[::1]:50051",
        "::1:50051,::1:50052",
        "[10.0.0.1]:50051,[10.0.0.2]:50051",
        "dns:///engine:50051,engine:50052",
    ],
)
def test_a_list_that_cannot_be_one_is_refused_by_the_name_of_the_setting(address: str) -> None:
    with pytest.raises(BadSetting) as refused:
        target(address, SETTING)
    assert str(refused.value).startswith(f"{SETTING}: ")
