import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.local.output import LOG_LIMIT
from cli.local.process import LAUNCH, ChildProcess, Program, run
from tests.integration.cli.local.parts import PART, Recorder, part, running_in, until


def _child(place: Path, recorder: Recorder, *arguments: str) -> ChildProcess:
    program = Program("part", part(*arguments), {**os.environ, "PLACE": str(place)})
    return ChildProcess(program, place / "part.log", on_line=recorder.on_line, on_event=recorder.on_event)


async def test_its_lines_reach_the_callback_and_a_log_only_we_can_read(place: Path) -> None:
    recorder = Recorder()
    child = _child(place, recorder, "bad")
    await child.start()
    assert await child.wait() == 2
    assert recorder.lines == [("part", "LINTELLO_LOCALE: 'xx' is not one of fr, en")]
    assert (place / "part.log").read_text() == "LINTELLO_LOCALE: 'xx' is not one of fr, en\n"
    assert (place / "part.log").stat().st_mode & 0o777 == 0o600
    await child.stop(0)


async def test_a_line_longer_than_any_buffer_is_cut_and_the_next_one_arrives(place: Path) -> None:
    recorder = Recorder()
    child = _child(place, recorder, "flood")
    await child.start()
    assert await child.wait() == 0
    assert recorder.lines[-1] == ("part", "end")
    assert sum(len(line) for _, line in recorder.lines[:-1]) == 200_000
    await child.stop(0)


@pytest.mark.parametrize(("size", "kept"), [(LOG_LIMIT, True), (LOG_LIMIT + 1, False)])
async def test_a_log_past_its_limit_begins_anew_at_the_next_start(place: Path, size: int, kept: bool) -> None:
    (place / "part.log").write_bytes(b"\n" * size)
    child = _child(place, Recorder(), "bad")
    await child.start()
    await child.wait()
    await child.stop(0)
    assert ((place / "part.log").stat().st_size > size) is kept


async def test_one_that_keeps_dying_is_restarted_more_and_more_slowly(place: Path) -> None:
    recorder = Recorder()
    lives = place / "lives"
    child = _child(place, recorder, "count", str(lives))
    await child.start()
    child.keep_alive()
    await until(lambda: len(recorder.heard("restarted", "part")) >= 3)
    await child.stop(1)
    seen = lives.read_text()
    await asyncio.sleep(1.0)
    assert lives.read_text() == seen
    assert recorder.heard("died", "part")[:3] == ["exit code 1"] * 3


async def test_a_deaf_one_is_killed_with_its_own_children(place: Path) -> None:
    recorder = Recorder()
    environment = {**os.environ, "PLACE": str(place), "LINTELLO_GATEWAY_PORT": "0"}
    program = Program("part", part("deaf"), environment)
    child = ChildProcess(program, place / "part.log", on_line=recorder.on_line, on_event=recorder.on_event)
    await child.start()
    await until(lambda: ("part", "asleep") in recorder.lines)
    await child.stop(0.2)
    await until(lambda: running_in(place) == [], 2)
    assert recorder.heard("killed", "part") == ["0.2"]


async def test_a_program_that_does_not_exist_is_an_exit_with_a_line(place: Path) -> None:
    recorder = Recorder()
    program = Program("part", [str(place / "nothing")], dict(os.environ))
    code, line = await run(program, place / "part.log", recorder.on_line)
    assert code == 1
    assert "No such file" in line


async def test_where_the_kernel_does_not_tell_the_end_of_the_lifeline_ends_the_program(place: Path) -> None:
    read, write = os.pipe()
    command = [sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid()), "9", "-", str(read), sys.executable, PART]
    environment = {**os.environ, "PLACE": str(place)}
    with subprocess.Popen([*command, "sleep"], pass_fds=[read], start_new_session=True, env=environment) as program:
        os.close(read)
        await until(lambda: len(running_in(place)) == 2)
        os.close(write)
        assert program.wait(5) == -9
    await until(lambda: running_in(place) == [], 10)
