import socket

import pytest

from cli.local.errors import PortTaken
from cli.local.ports import LOOPBACK, free_port, is_free, reserve


def test_a_port_with_a_listener_is_not_free_and_is_again_without() -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
        assert not is_free(port)
    assert is_free(port)


def test_a_port_asked_for_that_is_taken_is_named() -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(PortTaken) as refused:
            reserve(port - 1, [0, 1], explicit=True)
    assert refused.value.port in (port - 1, port)


def test_a_default_block_moves_past_a_taken_port() -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
        reservation = reserve(port - 2, range(5), explicit=False)
    reservation.release()
    assert reservation.first > port


def test_two_who_choose_before_either_listens_choose_differently() -> None:
    first = reserve(free_port(), [0], explicit=False)
    second = reserve(first.first, [0], explicit=False)
    assert second.first > first.first
    second.release()
    first.release()


def test_a_port_given_back_can_be_chosen_again() -> None:
    first = reserve(free_port(), [0], explicit=False)
    first.release()
    second = reserve(first.first, [0], explicit=False)
    second.release()
    assert second.first == first.first


def test_a_port_asked_for_is_ours_though_another_program_has_its_udp_twin() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        # Below the ports that the kernel hands out, or another test's connection may have the TCP port.
        port = next(port for port in range(20_000, 30_000) if is_free(port))
        other.bind((LOOPBACK, port))
        assert reserve(port, [0], explicit=True).first == port


def test_no_port_past_the_last_one_is_tried() -> None:
    with pytest.raises(PortTaken):
        reserve(65535, range(5), explicit=False)
