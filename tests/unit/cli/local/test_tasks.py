import asyncio

import pytest

from cli.local.tasks import together, uninterrupted


async def _fail() -> None:
    raise LookupError


async def test_the_first_error_is_raised_as_itself_and_ends_the_others() -> None:
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(LookupError):
        await together(wait(), _fail())
    assert ended.is_set()


async def test_nothing_to_do_is_done() -> None:
    await together()


async def test_work_is_finished_before_a_cancellation_is_passed_on() -> None:
    finished = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0.05)
        finished.set()

    task = asyncio.ensure_future(uninterrupted(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert finished.is_set()


async def test_the_error_of_finished_work_is_raised() -> None:
    with pytest.raises(LookupError):
        await uninterrupted(_fail())
