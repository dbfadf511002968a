"""`lintello ask` when its connection breaks: it comes back to its run by itself, and shows everything once."""

import asyncio
import os
from pathlib import Path

import pytest

from cli.commands import gateways
from cli.commands.client import StreamCut
from cli.commands.gateways import Gateways
from cli.local.folder import open_folder
from cli.local.ports import LOOPBACK, free_port
from cli.local.state import State, write_state
from tests.integration.cli.command import Outcome, interrupt, lintello, outcome, started
from tests.integration.cli.gateway import ScriptedGateway, serving
from tests.unit.cli import events

THINK = events.chain()
FRAMES = events.frames(THINK)
SAID = "Connexion coupée : reprise en cours…"


def _stack_of(folder: Path, *urls: str) -> tuple[str, str]:
    """The options that find a stack with these gateways, which seems to run in a folder."""
    named = {"gateway" if number == 1 else f"gateway-{number}": url for number, url in enumerate(urls, 1)}
    write_state(open_folder(folder), State(os.getpid(), named, {}, {}, False))
    return ("--data-dir", str(folder))


async def _whole() -> Outcome:
    async with serving(ScriptedGateway(FRAMES)) as gateway:
        return await lintello("ask", "Compare", "--url", gateway.url)


@pytest.mark.parametrize("breaks", [True, False])
async def test_a_stream_that_ends_too_soon_is_taken_up_where_it_was(breaks: bool) -> None:
    scripted = ScriptedGateway(FRAMES[:5], breaks=breaks, later=[FRAMES[5:]])
    async with serving(scripted) as gateway:
        ended = await lintello("ask", "Compare", "--url", gateway.url)
    whole = await _whole()
    assert gateway.watched == [(events.RUN, "5")]
    assert (ended.code, ended.errors) == (0, "")
    lines = ended.output.splitlines()
    assert lines.count(SAID) == 1
    assert [line for line in lines if line != SAID] == whole.output.splitlines()


async def test_in_the_middle_of_the_answer_it_is_said_beside_it() -> None:
    place = next(number for number, event in enumerate(THINK, 1) if event["type"] == "content")
    async with serving(ScriptedGateway(FRAMES[:place], later=[FRAMES[place:]])) as gateway:
        ended = await lintello("ask", "Compare", "--url", gateway.url)
    assert ended.errors == f"{SAID}\n"
    assert "".join(events.ANSWER) in ended.output.splitlines()


async def test_an_event_that_comes_twice_is_shown_once() -> None:
    async with serving(ScriptedGateway(FRAMES[:8], later=[FRAMES[3:12], FRAMES[10:]])) as gateway:
        ended = await lintello("ask", "Compare", "--json", "--url", gateway.url)
    assert ended.output.encode() == b"".join(frame.partition(b"data: ")[2][:-1] for frame in FRAMES)
    assert ended.errors == f"{SAID}\n{SAID}\n"
    assert [after for _, after in gateway.watched] == ["8", "12"]


async def test_a_question_of_which_nobody_knows_whether_it_arrived_is_sent_again_with_its_key() -> None:
    async with serving(ScriptedGateway(FRAMES, unheard=2)) as gateway:
        ended = await lintello("ask", "Compare", "--json", "--url", gateway.url)
    assert (ended.code, ended.output.count("\n"), ended.errors) == (0, len(THINK), f"{SAID}\n")
    assert len(gateway.asked) == 3
    assert len({headers["Idempotency-Key"] for headers in gateway.headers}) == 1


async def test_two_questions_have_two_keys() -> None:
    async with serving(ScriptedGateway(FRAMES)) as gateway:
        for _ in range(2):
            await lintello("ask", "Compare", "--url", gateway.url)
    assert len({headers["Idempotency-Key"] for headers in gateway.headers}) == 2


async def test_a_run_whose_gateway_is_gone_is_taken_up_through_the_other_one(tmp_path: Path) -> None:
    one = ScriptedGateway(FRAMES[:5])
    async with serving(one), serving(ScriptedGateway(later=[FRAMES[5:]])) as two:
        ended = await lintello("ask", "Compare", "--json", *_stack_of(tmp_path, one.url, two.url))
    assert (ended.code, ended.output.count("\n")) == (0, len(THINK))
    assert (one.watched, two.watched) == ([], [(events.RUN, "5")])


async def test_a_gateway_asked_for_by_its_url_is_used_first_and_brings_the_others_of_its_stack(tmp_path: Path) -> None:
    two = ScriptedGateway(FRAMES[:5])
    async with serving(ScriptedGateway(later=[FRAMES[5:]])) as one, serving(two):
        found = _stack_of(tmp_path, one.url, two.url)
        ended = await lintello("ask", "Compare", "--json", "--url", two.url, *found)
    assert (ended.code, len(two.asked), one.watched) == (0, 1, [(events.RUN, "5")])


async def test_a_gateway_of_another_stack_is_used_alone(tmp_path: Path) -> None:
    async with serving(ScriptedGateway(FRAMES[:5], later=[410])) as one, serving(ScriptedGateway()) as other:
        await lintello("ask", "Compare", "--url", one.url, *_stack_of(tmp_path, other.url))
    assert (len(one.watched), other.watched) == (1, [])


async def test_a_gateway_where_nobody_is_leaves_the_question_to_the_next_one(tmp_path: Path) -> None:
    nobody = f"http://{LOOPBACK}:{free_port()}"
    async with serving(ScriptedGateway(FRAMES)) as two:
        ended = await lintello("ask", "Compare", *_stack_of(tmp_path, nobody, two.url))
    assert (ended.code, ended.errors, SAID in ended.output) == (0, "", False)


async def test_a_gateway_that_is_only_just_back_is_asked_again() -> None:
    async with serving(ScriptedGateway(FRAMES[:5], later=[503, 429, FRAMES[5:]])) as gateway:
        ended = await lintello("ask", "Compare", "--json", "--url", gateway.url)
    assert (ended.code, ended.output.count("\n"), ended.errors) == (0, len(THINK), f"{SAID}\n")


@pytest.mark.parametrize("status", [404, 410])
async def test_a_run_that_is_no_longer_there_ends_in_1_and_the_name_of_its_conversation(status: int) -> None:
    async with serving(ScriptedGateway(FRAMES[:5], later=[status])) as gateway:
        ended = await lintello("ask", "Compare", "--json", "--url", gateway.url)
    assert ended.code == 1
    assert ended.errors.splitlines()[0] == SAID
    assert events.CONVERSATION in ended.errors.splitlines()[1]
    assert len(gateway.watched) == 1


async def test_an_interrupt_while_it_comes_back_stops_the_run(tmp_path: Path) -> None:
    scripted = ScriptedGateway(FRAMES[:5], later=[503] * 1000)
    nobody = f"http://{LOOPBACK}:{free_port()}"
    async with serving(scripted) as gateway:
        options = _stack_of(tmp_path, nobody, gateway.url)
        async with started("ask", "Compare", *options) as process:
            async with asyncio.timeout(30):
                while not gateway.watched:
                    await asyncio.sleep(0.05)
            interrupt(process)
            ended = await asyncio.wait_for(outcome(process), 10)
    assert gateway.stopped == [events.RUN]
    assert (ended.code, events.CONVERSATION in ended.errors) == (1, True)


async def test_coming_back_is_given_up_when_there_is_nothing_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateways, "PATIENCE_SECONDS", 0.5)
    told: list[str] = []
    seen: list[int] = []

    async def follow(way: Gateways) -> None:
        async for _, event in way.follow({"message": "Compare"}, lambda: told.append("cut")):
            seen.append(event["seq"])

    async with serving(ScriptedGateway(FRAMES[:5], later=[503] * 1000)) as gateway, Gateways([gateway.url]) as way:
        with pytest.raises(StreamCut):
            await follow(way)
    assert (seen, told) == ([1, 2, 3, 4, 5], ["cut"])
    assert len(gateway.watched) > 1
