"""Settings: what is wrong with them is one line that names it and quotes nothing."""

from typing import Annotated

import pytest
from pydantic import AfterValidator, Field

from kit.settings import BadSetting, Settings, check_names, known_names, load

SECRET = "hunter2"


def _no(value: str) -> str:
    if value:
        raise ValueError("must be something else")
    return value


class Example(Settings):
    """A service's settings."""

    max_thinks_concurrent: int = Field(default=20, ge=1)
    jwt_secret: Annotated[str, AfterValidator(_no)] = ""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """What every service needs."""
    monkeypatch.setenv("LINTELLO_INTERNAL_PUBLIC_KEYS", "engine:key")
    return monkeypatch


def test_a_value_is_read_under_the_prefix(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LINTELLO_MAX_THINKS_CONCURRENT", "7")
    assert load(Example).max_thinks_concurrent == 7


def test_without_a_value_the_default_counts(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LINTELLO_MAX_THINKS_CONCURRENT", "")
    settings = load(Example)
    assert (settings.max_thinks_concurrent, settings.drain_seconds, settings.locale) == (20, 30, "fr")


def test_a_misspelt_name_is_refused_with_the_nearest(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LINTELLO_MAX_THINK_CONCURRENT", "7")
    with pytest.raises(BadSetting) as refused:
        load(Example)
    assert str(refused.value) == (
        "LINTELLO_MAX_THINK_CONCURRENT: there is no such setting; did you mean LINTELLO_MAX_THINKS_CONCURRENT?"
    )


def test_a_name_like_no_other_is_refused_without_a_hint() -> None:
    with pytest.raises(BadSetting, match=r"^LINTELLO_QQQQ: there is no such setting$"):
        check_names(["LINTELLO_QQQQ"])


def test_names_without_the_prefix_are_nobody_s_business() -> None:
    check_names(["PATH", "LANG", "MY_LINTELLO_URL"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_THINKS_CONCURRENT", SECRET),
        ("MAX_THINKS_CONCURRENT", "0"),
        ("DRAIN_SECONDS", SECRET),
        ("LOCALE", SECRET),
        ("METRICS_PORT", SECRET),
        ("METRICS_PORT", "0"),
        ("METRICS_PORT", "65536"),
        ("JWT_SECRET", SECRET),
    ],
)
def test_a_bad_value_is_named_in_one_line_and_not_quoted(
    environment: pytest.MonkeyPatch, name: str, value: str
) -> None:
    environment.setenv(f"LINTELLO_{name}", value)
    with pytest.raises(BadSetting) as refused:
        load(Example)
    text = str(refused.value)
    assert text.startswith(f"LINTELLO_{name}: ")
    assert "\n" not in text
    assert SECRET not in text


def test_a_bad_value_leaves_nothing_of_itself_in_the_chain_of_exceptions(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LINTELLO_JWT_SECRET", SECRET)
    with pytest.raises(BadSetting) as refused:
        load(Example)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_our_own_validators_speak_in_their_own_words(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LINTELLO_JWT_SECRET", "x")
    with pytest.raises(BadSetting, match=r"^LINTELLO_JWT_SECRET: must be something else$"):
        load(Example)


def test_a_missing_value_is_named(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("LINTELLO_INTERNAL_PUBLIC_KEYS")
    with pytest.raises(BadSetting, match=r"^LINTELLO_INTERNAL_PUBLIC_KEYS: is missing$"):
        load(Example)


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf"])
def test_a_drain_time_is_a_length_of_time(environment: pytest.MonkeyPatch, seconds: str) -> None:
    environment.setenv("LINTELLO_DRAIN_SECONDS", seconds)
    with pytest.raises(BadSetting, match=r"^LINTELLO_DRAIN_SECONDS: "):
        load(Example)


def test_settings_do_not_change_once_they_are_read() -> None:
    with pytest.raises(ValueError):
        setattr(load(Example), "drain_seconds", 1)  # noqa: B010 mypy knows that it can't be set


def test_the_known_names_are_sorted_and_there_once() -> None:
    names = known_names()
    assert names == sorted(set(names))
