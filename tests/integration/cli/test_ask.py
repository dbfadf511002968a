"""`lintello ask` against a gateway that answers as CONTRACT says."""

import asyncio
import json
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from tests.integration.cli.command import interrupt, lintello, outcome, started
from tests.integration.cli.gateway import ScriptedGateway, serving
from tests.unit.cli import events

ANSWER = "".join(events.ANSWER)


async def test_a_think_shows_its_steps_its_answer_and_its_tree() -> None:
    async with serving(ScriptedGateway(events.frames(events.chain()))) as gateway:
        ended = await lintello("ask", "Compare", "--url", gateway.url)
    assert (ended.code, ended.errors) == (0, "")
    lines = ended.output.splitlines()
    assert [lines.index(text) for text in ("🎯 5/5 Rédaction de la réponse…", ANSWER, "Arbre de pensée")] == sorted(
        lines.index(text) for text in ("🎯 5/5 Rédaction de la réponse…", ANSWER, "Arbre de pensée")
    )


async def test_the_options_travel_in_the_request() -> None:
    options = ("--mode", "recherche", "--think", "on", "--conversation", events.CONVERSATION, "--model", "large")
    async with serving(ScriptedGateway(events.frames(events.classic()))) as gateway:
        await lintello("ask", " Compare ", *options, "--url", gateway.url + "/")
    assert gateway.asked == [
        {
            "message": "Compare",
            "thinking": "on",
            "mode": "recherche",
            "conversation_id": events.CONVERSATION,
            "model": "large",
        }
    ]


async def test_the_language_of_the_user_is_asked_for() -> None:
    async with serving(ScriptedGateway(events.frames(events.classic()))) as gateway:
        await lintello("ask", "x", "--url", gateway.url, settings={"LINTELLO_LOCALE": "en"})
    assert gateway.headers[0]["Accept-Language"] == "en"


async def test_nobody_is_named_where_no_token_is_asked_for() -> None:
    async with serving(ScriptedGateway(events.frames(events.classic()))) as gateway:
        await lintello("ask", "x", "--url", gateway.url)
    assert "Authorization" not in gateway.headers[0]


async def test_in_jwt_mode_the_holder_of_the_secret_brings_a_token() -> None:
    settings = {"LINTELLO_AUTH_MODE": "jwt", "LINTELLO_JWT_SECRET": "s" * 40}
    async with serving(ScriptedGateway(events.frames(events.classic()))) as gateway:
        await lintello("ask", "x", "--url", gateway.url, settings=settings)
    token = gateway.headers[0]["Authorization"].removeprefix("Bearer ")
    assert jwt.decode(token, OctKey.import_key("s" * 40), algorithms=["HS256"]).claims["sub"] == "demo"


async def test_json_is_each_event_as_it_was_received() -> None:
    sequence = events.chain()
    async with serving(ScriptedGateway(events.frames(sequence))) as gateway:
        ended = await lintello("ask", "Compare", "--json", "--url", gateway.url)
    assert (ended.code, ended.errors) == (0, "")
    assert ended.output.splitlines() == [json.dumps(event, ensure_ascii=False) for event in sequence]


async def test_a_think_that_failed_before_its_answer_still_ends_well() -> None:
    async with serving(ScriptedGateway(events.frames(events.failed_think()))) as gateway:
        ended = await lintello("ask", "Compare", "--url", gateway.url)
    assert (ended.code, ANSWER in ended.output.splitlines()) == (0, True)


async def test_an_error_event_goes_to_standard_error_and_ends_in_1() -> None:
    async with serving(ScriptedGateway(events.frames(events.broken()))) as gateway:
        ended = await lintello("ask", "Compare", "--url", gateway.url)
    assert (ended.code, ended.errors) == (1, "Le modèle s'est interrompu.\n")


async def test_events_cut_anywhere_between_bytes_read_the_same() -> None:
    whole = b": a comment\n\n" + b"".join(events.frames(events.classic())).replace(b"de **", "de\u2028é **".encode())
    async with serving(ScriptedGateway([whole[place : place + 1] for place in range(len(whole))])) as gateway:
        ended = await lintello("ask", "Compare", "--json", "--url", gateway.url)
    assert ended.code == 0
    assert ended.output.count("\n") == len(events.classic())


async def test_a_stream_cut_before_done_that_cannot_be_taken_up_says_so_and_ends_in_1() -> None:
    async with serving(ScriptedGateway(events.frames(events.chain()[:-1]))) as gateway:
        ended = await lintello("ask", "Compare", "--url", gateway.url)
    assert ended.code == 1
    assert ended.errors.splitlines()[-1] == (
        f"La réponse s'est interrompue avant sa fin ; ce qui est gardé : lintello tree {events.CONVERSATION}"
    )


@pytest.mark.parametrize("nonsense", [b"data: {not json\n\n", b"data: 3\n\n"])
async def test_a_stream_of_nonsense_ends_in_1_without_a_traceback(nonsense: bytes) -> None:
    async with serving(ScriptedGateway([nonsense])) as gateway:
        ended = await lintello("ask", "Compare", "--url", gateway.url)
    assert (ended.code, ended.errors) == (1, "LintellO a répondu par un événement illisible.\n")


async def test_an_interrupt_stops_the_run_and_says_what_was_kept() -> None:
    ending = events.frames([{**events.done(partial=True), "seq": 12}])
    scripted = ScriptedGateway(events.frames(events.chain()[:11]), holds=True, ending=ending)
    async with serving(scripted) as gateway, started("ask", "Compare", "--url", gateway.url) as process:
        await asyncio.wait_for(gateway.streaming.wait(), 30)
        await _output_reached(process, b"5/5")
        interrupt(process)
        ended = await outcome(process)
    assert gateway.stopped == [events.RUN]
    assert ended.code == 1
    assert ended.errors.splitlines() == [
        f"Arrêté. Gardé dans la conversation {events.CONVERSATION} : étapes terminées : 4."
    ]


async def test_an_interrupt_of_a_run_that_never_ends_does_not_wait_for_it() -> None:
    scripted = ScriptedGateway(events.frames(events.chain()[:4]), holds=True, deaf=True)
    async with serving(scripted) as gateway, started("ask", "Compare", "--url", gateway.url) as process:
        await _output_reached(process, "✅ 1/5".encode())
        interrupt(process)
        ended = await asyncio.wait_for(outcome(process), 10)
    assert (ended.code, gateway.stopped) == (1, [events.RUN])


async def test_an_interrupt_before_the_run_is_known_waits_for_its_name_to_stop_it() -> None:
    async def begin_late() -> None:
        await asyncio.sleep(0.5)
        gateway.released.set()

    scripted = ScriptedGateway([], holds=True, ending=[*events.frames(events.chain()[:1])])
    async with serving(scripted) as gateway, started("ask", "Compare", "--url", gateway.url) as process:
        await asyncio.wait_for(gateway.streaming.wait(), 30)
        interrupt(process)
        late = asyncio.ensure_future(begin_late())
        ended = await outcome(process)
        await late
    assert ended.code == 1
    assert gateway.stopped == [events.RUN]


async def test_the_question_is_read_from_a_pipe() -> None:
    async with serving(ScriptedGateway(events.frames(events.classic()))) as gateway:
        await lintello("ask", "--url", gateway.url, given="D'un tube\n")
    assert gateway.asked[0]["message"] == "D'un tube"


async def test_a_dash_reads_the_question_from_standard_input() -> None:
    async with serving(ScriptedGateway(events.frames(events.classic()))) as gateway:
        await lintello("ask", "-", "--url", gateway.url, given="Deux\nlignes")
    assert gateway.asked[0]["message"] == "Deux\nlignes"


@pytest.mark.parametrize("question", ["", "  \n", "-"])
async def test_an_empty_question_is_wrong_usage(question: str) -> None:
    ended = await lintello("ask", question, "--url", "http://127.0.0.1:9")
    assert (ended.code, ended.output, len(ended.errors.splitlines())) == (2, "", 1)


async def test_without_a_running_stack_it_says_how_to_start_one(tmp_path: Path) -> None:
    ended = await lintello("ask", "x", "--data-dir", str(tmp_path))
    assert (ended.code, ended.output) == (1, "")
    assert ended.errors == "LintellO ne tourne pas ici : démarrez-le avec « lintello up » ou « make demo ».\n"


async def test_a_url_where_nobody_answers_ends_in_1() -> None:
    ended = await lintello("ask", "x", "--url", "http://127.0.0.1:9")
    assert (ended.code, "http://127.0.0.1:9" in ended.errors, len(ended.errors.splitlines())) == (1, True, 1)


@pytest.mark.parametrize("url", ["nowhere", "ftp://127.0.0.1", "http://", "http://[", "http://a:b", "http://a b"])
async def test_what_is_no_http_address_is_wrong_usage(url: str) -> None:
    ended = await lintello("ask", "x", "--url", url)
    assert (ended.code, ended.errors) == (2, "--url : doit être une adresse http:// ou https://\n")


async def test_a_problem_document_is_told_by_its_title_and_detail() -> None:
    problem = {"title": "Conflit", "detail": "Une réponse est déjà en cours.", "status": 409, "errors": []}
    async with serving(ScriptedGateway(problem=(409, problem))) as gateway:
        ended = await lintello("ask", "x", "--url", gateway.url)
    assert (ended.code, ended.output, ended.errors) == (1, "", "Conflit : Une réponse est déjà en cours.\n")


async def test_a_problem_without_detail_is_told_by_its_title() -> None:
    async with serving(ScriptedGateway(problem=(503, {"title": "Réessayez", "detail": None}))) as gateway:
        ended = await lintello("ask", "x", "--url", gateway.url)
    assert (ended.code, ended.errors) == (1, "Réessayez\n")


async def test_a_400_that_names_a_field_is_wrong_usage() -> None:
    problem = {"title": "No", "detail": "no", "errors": [{"field": "mode", "message": "ce mode n'existe pas"}]}
    async with serving(ScriptedGateway(problem=(400, problem))) as gateway:
        ended = await lintello("ask", "x", "--mode", "cuisine", "--url", gateway.url)
    assert (ended.code, ended.errors) == (2, "mode: ce mode n'existe pas\n")


@pytest.mark.parametrize("arguments", [("--think", "maybe"), ("--frobnicate",), ("one", "too many")])
async def test_a_wrong_option_is_told_in_one_line(arguments: tuple[str, ...]) -> None:
    ended = await lintello("ask", *arguments)
    assert (ended.code, ended.output, len(ended.errors.splitlines())) == (2, "", 1)


async def test_a_language_nobody_speaks_is_told_in_one_line() -> None:
    ended = await lintello("ask", "x", settings={"LINTELLO_LOCALE": "tlh"})
    assert (ended.code, ended.errors) == (2, "LINTELLO_LOCALE : doit être fr ou en\n")


async def _output_reached(process: asyncio.subprocess.Process, mark: bytes) -> None:
    assert process.stdout is not None
    while mark not in await asyncio.wait_for(process.stdout.readline(), 30):
        pass
