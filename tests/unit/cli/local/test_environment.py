import pytest

from cli.local.environment import READERS, Places, child_environment, metrics_port, wants_trial_model
from cli.local.errors import BadMetricsPort
from cli.local.keys import Keys, public_key
from cli.local.services import Replica

SEEDS = {"gateway": "gateway:" + "A" * 43 + "=", "engine": "engine:" + "B" * 42 + "A="}
KEYS = Keys(
    encryption_keys="local:k",
    internal_keys=SEEDS,
    jwt_secret="made",
    postgres_password="p",
    postgres_superuser_password="s",
)
PLACES = Places(
    data_folder="/d",
    database_url="postgresql://made",
    redis_url="unix:///made",
    addresses={"engine": "127.0.0.1:1,127.0.0.1:6", "treestore": "127.0.0.1:2", "quota": "127.0.0.1:3"},
    trial_url=None,
)
PROCESSES = ("gateway", "engine", "treestore", "quota", "trial", "migrate")


def _environment(name: str, **parent: str) -> dict[str, str]:
    return child_environment(name, {f"LINTELLO_{key}": value for key, value in parent.items()}, KEYS, PLACES, {})


def _environment_of(replica: Replica, **parent: str) -> dict[str, str]:
    given = {f"LINTELLO_{key}": value for key, value in parent.items()}
    return child_environment(replica.service, given, KEYS, PLACES, replica.settings)


def _have(setting: str, **parent: str) -> set[str]:
    return {name for name in PROCESSES if f"LINTELLO_{setting}" in _environment(name, **parent)}


@pytest.mark.parametrize("setting", sorted(READERS))
def test_a_secret_reaches_only_the_processes_that_need_it(setting: str) -> None:
    assert _have(setting, **{setting: SEEDS["gateway"] if setting == "INTERNAL_KEY" else "x"}) == READERS[setting]


def test_the_sealing_key_is_treestores_alone() -> None:
    assert _have("ENCRYPTION_KEYS") == {"treestore"}


def test_gateway_and_engine_sign_each_with_its_own_key() -> None:
    signing = {name: _environment(name).get("LINTELLO_INTERNAL_KEY") for name in PROCESSES}
    assert {name: key for name, key in signing.items() if key} == SEEDS


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("migrate", "DATABASE_URL", "postgresql://mine"),
        ("quota", "REDIS_URL", "redis://mine"),
        ("treestore", "ENCRYPTION_KEYS", "mine:k"),
        ("engine", "DRAIN_SECONDS", "30"),
        ("gateway", "JWT_SECRET", "mine"),
        ("treestore", "INTERNAL_PUBLIC_KEYS", "mine:k"),
    ],
)
def test_what_the_user_set_wins_over_what_the_stack_makes(name: str, setting: str, value: str) -> None:
    assert _environment(name, **{setting: value})[f"LINTELLO_{setting}"] == value


def test_a_private_key_of_the_users_is_verified_by_its_public_half() -> None:
    mine = "mine:" + "C" * 42 + "A="
    environment = _environment("engine", INTERNAL_KEY=mine)
    assert environment["LINTELLO_INTERNAL_KEY"] == mine
    assert public_key(mine) in environment["LINTELLO_INTERNAL_PUBLIC_KEYS"].split(",")


def test_an_empty_value_counts_as_unset() -> None:
    assert _environment("quota", REDIS_URL="")["LINTELLO_REDIS_URL"] == "unix:///made"


def test_development_gets_a_secret_to_sign_logins_with() -> None:
    assert _environment("gateway")["LINTELLO_JWT_SECRET"] == "made"


def test_the_jwt_mode_is_never_given_a_secret_nobody_knows() -> None:
    assert "LINTELLO_JWT_SECRET" not in _environment("gateway", AUTH_MODE="jwt")


def test_where_things_listen_is_the_stacks_to_say() -> None:
    replica = Replica("gateway", 1, 8081, asked=False)
    environment = _environment_of(replica, GATEWAY_PORT="9", ENGINE_ADDRESS="elsewhere:1", DATA_DIR="/other")
    assert environment["LINTELLO_GATEWAY_PORT"] == "8081"
    assert environment["LINTELLO_ENGINE_ADDRESS"] == "127.0.0.1:1,127.0.0.1:6"
    assert environment["LINTELLO_DATA_DIR"] == "/d"


def test_a_process_listens_at_an_address_of_its_own_and_finds_all_of_the_others() -> None:
    environment = _environment_of(Replica("engine", 2, 6, asked=False))
    assert environment["LINTELLO_ENGINE_ADDRESS"] == "127.0.0.1:6"
    assert environment["LINTELLO_QUOTA_ADDRESS"] == "127.0.0.1:3"


def test_only_a_process_that_has_a_port_for_metrics_is_told_one() -> None:
    replica = Replica("engine", 1, 6, asked=False, metrics_port=9101)
    assert _environment_of(replica, METRICS_PORT="9100")["LINTELLO_METRICS_PORT"] == "9101"
    assert "LINTELLO_METRICS_PORT" not in _environment("gateway", METRICS_PORT="9100")


@pytest.mark.parametrize("value", ["0", "65536", "x", "-1", "٣", "9" * 6])
def test_a_port_of_metrics_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(BadMetricsPort):
        metrics_port({"LINTELLO_METRICS_PORT": value})


def test_a_gateway_has_a_second_for_what_the_engines_left_it_to_say() -> None:
    assert _environment("gateway")["LINTELLO_DRAIN_SECONDS"] == "1"
    assert _environment("engine")["LINTELLO_DRAIN_SECONDS"] == "5"


@pytest.mark.parametrize("setting", ["LLM_BASE_URL", "LLM_API_KEY"])
def test_any_model_setting_means_no_trial_model(setting: str) -> None:
    assert wants_trial_model({f"LINTELLO_{setting}": ""})
    assert not wants_trial_model({f"LINTELLO_{setting}": "x"})


def test_the_trial_model_is_announced_to_the_services() -> None:
    places = Places("/d", "", "", {}, "http://127.0.0.1:5/v1")
    environment = child_environment("engine", {}, KEYS, places, {})
    assert environment["LINTELLO_LLM_BASE_URL"] == "http://127.0.0.1:5/v1"
    assert environment["LINTELLO_TRIAL_MODEL"] == "1"


def test_what_is_not_ours_passes_through() -> None:
    assert child_environment("engine", {"SSL_CERT_FILE": "/ca"}, KEYS, PLACES, {})["SSL_CERT_FILE"] == "/ca"
