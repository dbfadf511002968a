import pytest

from cli.local.errors import BadReplicas, PortTaken
from cli.local.layout import Layout, choose
from cli.local.ports import free_port, reserve
from cli.local.services import GATEWAY, check_replicas


def _layout(**replicas: int) -> Layout:
    """A layout whose first ports nobody asked for."""
    layout = choose(None, None, None, replicas)
    layout.release()
    return layout


def test_one_of_each_has_the_ports_its_users_know() -> None:
    layout = _layout()
    first = layout.grpc[0].port
    assert [(process.name, process.port - first) for process in layout.grpc] == [
        ("engine", 0),
        ("treestore", 1),
        ("quota", 2),
    ]
    assert [process.name for process in layout.gateways] == ["gateway"]


def test_more_grpc_processes_come_after_the_block_of_five() -> None:
    layout = _layout(engine=3, quota=2)
    first = layout.grpc[0].port
    assert [process.name for process in layout.of("engine")] == ["engine", "engine-2", "engine-3"]
    assert layout.of("engine")[0].port == first
    assert all(process.port >= first + 5 for process in layout.grpc if process.number > 1)


def test_more_gateways_come_after_the_first_one() -> None:
    ports = [process.port for process in _layout(gateway=3).of(GATEWAY)]
    assert ports == sorted(set(ports))


def test_no_two_processes_share_a_port() -> None:
    layout = choose(None, None, free_port(), {"engine": 8, "treestore": 8, "quota": 8, "gateway": 8})
    layout.release()
    ports = [process.port for process in layout.processes]
    ports += [process.metrics_port for process in layout.grpc if process.metrics_port is not None]
    assert len(ports) == len(set(ports)) == 32 + 24


def test_only_the_first_processes_have_ports_that_were_asked_for() -> None:
    port = free_port()
    layout = choose(port, None, None, {"gateway": 2})
    layout.release()
    assert [process.asked for process in layout.gateways] == [True, False]
    assert layout.gateways[0].port == port


def test_each_grpc_process_has_the_next_port_of_metrics() -> None:
    base = free_port()
    layout = choose(None, None, base, {"engine": 2})
    layout.release()
    assert [process.metrics_port for process in layout.grpc] == [base, base + 1, base + 2, base + 3]
    assert [process.metrics_port for process in layout.gateways] == [None]


def test_what_was_chosen_before_a_port_turned_out_to_be_taken_is_given_back() -> None:
    gateway = free_port()
    with pytest.raises(PortTaken) as refused:
        choose(gateway, None, 65535, {})
    assert refused.value.asked
    again = reserve(gateway, [0], explicit=False)
    assert again.first == gateway
    again.release()


@pytest.mark.parametrize("replicas", [{"engine": 0}, {"gateway": 9}, {"planner": 1}, {"engine-2": 1}])
def test_what_is_no_service_or_no_number_of_processes_is_refused_by_its_name(replicas: dict[str, int]) -> None:
    with pytest.raises(BadReplicas) as refused:
        check_replicas(replicas)
    [(service, count)] = replicas.items()
    assert refused.value.given == f"{service}={count}"
