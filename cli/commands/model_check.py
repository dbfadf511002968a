"""What `doctor` asks of the model endpoint: whether it answers, and which of its models serves each alias."""

from collections.abc import Mapping
from typing import Any

import yaml

from cli.commands.checks import Finding
from cli.commands.settings import setting
from cli.local.environment import wants_trial_model
from cli.screen.format import printable
from cli.texts import say
from kit.model import ChatModel, ModelError, ModelErrorReason
from services.engine.adapters.aliases import FILE, Aliases
from services.engine.domain import ALIASES, Alias
from services.engine.settings import PROVIDER_BASE_URL

PATIENCE = 5
NO_LIST = {404, 405, 501}
"""Statuses of a server that keeps no list of models but may well chat."""


async def check_model(environment: Mapping[str, str]) -> list[Finding]:
    """The endpoint, then one finding per alias; only that it is the trial model where none was configured."""
    matter = say("doctor.model")
    if wants_trial_model(environment):
        return [Finding(matter, "warning", say("doctor.model_trial"))]
    url = setting("LLM_BASE_URL") or PROVIDER_BASE_URL
    try:
        client = ChatModel(url, setting("LLM_API_KEY") or None, timeout=PATIENCE, max_attempts=1)
    except ValueError:
        # A URL or a key that can't be used; neither is shown.
        return [Finding(matter, "failed", say("doctor.model_unusable"))]
    try:
        return await _ask(client, matter, printable(url.partition("?")[0]))
    finally:
        await client.aclose()


async def _ask(client: ChatModel, matter: str, url: str) -> list[Finding]:
    try:
        listed = await client.models()
    except ModelError as error:
        reason = f"{error.reason.value} {error.status or ''}".strip()
        keeps_no_list = error.reason is ModelErrorReason.REFUSED and error.status in NO_LIST
        text = (
            say("doctor.model_no_list", url=url) if keeps_no_list else say("doctor.model_down", url=url, reason=reason)
        )
        first = Finding(matter, "warning" if keeps_no_list else "failed", text)
        return [first, *await _aliases(client, matter, [])] if keeps_no_list else [first]
    first = Finding(matter, "ok", say("doctor.model_ok", url=url, count=len(listed)))
    return [first, *await _aliases(client, matter, listed)]


async def _aliases(client: ChatModel, matter: str, listed: list[str]) -> list[Finding]:
    given: dict[Alias, str] = {alias: setting(f"MODEL_{alias.upper()}") for alias in ALIASES}
    aliases = Aliases(client, given)
    return [_alias(matter, alias, await aliases.name(alias), bool(given[alias]), listed) for alias in ALIASES]


def _alias(matter: str, alias: Alias, model: str, given: bool, listed: list[str]) -> Finding:
    known: dict[str, Any] = yaml.safe_load(FILE.read_text("utf-8"))
    if given:
        missing = bool(listed) and model not in listed
        verdict = "alias_given_unlisted" if missing else "alias_given"
        return Finding(f"{matter} {alias}", "warning" if missing else "ok", say(f"doctor.{verdict}", model=model))
    usual = model in known[alias]["names"]
    text = say(f"doctor.alias_{'usual' if usual else 'first'}", model=printable(model))
    return Finding(f"{matter} {alias}", "ok" if usual else "warning", text)
