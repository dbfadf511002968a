"""`lintello up`: everything on this machine, in the foreground, until it is stopped."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from cli.commands.failure import DONE
from cli.commands.settings import check_settings, setting
from cli.commands.stack_events import failure_for, report
from cli.local.errors import BadReplicas, LocalStackError
from cli.local.folder import choose_path
from cli.local.stack import Stack, StackOptions
from cli.texts import say

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def up(port: int | None, grpc_port: int | None, data_dir: Path | None, replicas: str | None) -> int:
    """Run the stack until SIGINT, SIGTERM or a closed terminal: the exit code. Raises Failure."""
    check_settings()
    return asyncio.run(_up(port, grpc_port, data_dir, replicas))


async def _up(port: int | None, grpc_port: int | None, data_dir: Path | None, replicas: str | None) -> int:
    cancel_on_signals()
    try:
        async with running_stack(port, grpc_port, data_dir, replicas):
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        pass
    return DONE


def cancel_on_signals() -> None:
    """From now on a stop signal cancels the current task, once; what it cleans up isn't cut by a second one."""
    task = asyncio.current_task()
    assert task is not None
    asked = False

    def stop() -> None:
        nonlocal asked
        if not asked:
            asked = True
            task.cancel()

    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop)


@asynccontextmanager
async def running_stack(
    port: int | None, grpc_port: int | None, data_dir: Path | None, replicas: str | None
) -> AsyncIterator[Stack]:
    """A stack that is healthy and has said so; stopped afterwards. Raises Failure when it can't start."""
    try:
        options = StackOptions(
            on_event=report,
            on_line=_ignore,
            port=port,
            grpc_port=grpc_port,
            data_dir=data_dir,
            replicas=read_replicas(replicas),
        )
        _announce(data_dir)
        async with Stack(options) as stack:
            print(f"LintellO is ready: {stack.url}", flush=True)
            for url in stack.gateway_urls[1:]:
                print(say("up.gateway", url=url), flush=True)
            if stack.trial_model:
                print(say("model.trial"), flush=True)
            yield stack
    except LocalStackError as error:
        raise failure_for(error) from None


def read_replicas(option: str | None) -> dict[str, int]:
    """`engine=2,gateway=2` as numbers of processes by service. Raises BadReplicas, with what isn't one of them."""
    replicas: dict[str, int] = {}
    for given in [] if option is None else option.split(","):
        service, _, count = (part.strip() for part in given.partition("="))
        if service in replicas or not (count.isascii() and count.isdecimal() and len(count) == 1):
            raise BadReplicas(given)
        replicas[service] = int(count)
    return replicas


def _announce(data_dir: Path | None) -> None:
    print(say("up.folder", path=choose_path(data_dir, os.environ)))
    if setting("DATABASE_URL"):
        print(say("up.given_database"))
    if setting("REDIS_URL"):
        print(say("up.given_redis"))


def _ignore(_part: str, _line: str) -> None:
    """What the parts write goes to their logs in the data folder only."""
