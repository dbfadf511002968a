"""What the command line says to people: one YAML file per language, French by default."""

import os
from functools import cache
from importlib import resources

LOCALES = ("fr", "en")


def locale() -> str:
    """`LINTELLO_LOCALE` when we speak it, else French; `cli.main` refuses a value that isn't a language of ours."""
    named = os.environ.get("LINTELLO_LOCALE", "")
    return named if named in LOCALES else "fr"


def say(key: str, **values: object) -> str:
    """The text under `section.name` in the user's language, its `{slots}` filled. Raises KeyError for a wrong key."""
    return table(locale())[key].format(**values)


@cache
def table(name: str) -> dict[str, str]:
    """Every text of one language, by `section.name`."""
    import yaml

    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text("utf-8")
    sections: dict[str, dict[str, str]] = yaml.safe_load(text)
    return {f"{section}.{key}": value for section, texts in sections.items() for key, value in texts.items()}


def check_locale() -> None:
    """Raise Failure (wrong usage) when `LINTELLO_LOCALE` names a language we don't speak."""
    from cli.commands.failure import WRONG_USAGE, Failure

    if os.environ.get("LINTELLO_LOCALE", "") not in ("", *LOCALES):
        raise Failure(say("usage.locale"), WRONG_USAGE)
