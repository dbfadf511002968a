"""`lintello`: the commands and their options. What a command does is imported when it is called."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.commands.failure import FAILED, WRONG_USAGE, Failure
from cli.texts import check_locale, say

app = typer.Typer(
    name="lintello", help=say("help.app"), no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


class Think(StrEnum):
    """Whether to think."""

    ON = "on"
    OFF = "off"
    AUTO = "auto"


class ServiceName(StrEnum):
    """A service that `serve` runs."""

    ENGINE = "engine"
    TREESTORE = "treestore"
    QUOTA = "quota"
    GATEWAY = "gateway"


class Revision(StrEnum):
    """Where migrations lead."""

    HEAD = "head"
    BASE = "base"


DataDir = Annotated[Path | None, typer.Option("--data-dir", help=say("help.data_dir"), show_default=False)]
Url = Annotated[str | None, typer.Option("--url", help=say("help.url"), show_default=False)]
Port = Annotated[int | None, typer.Option("--port", min=1, max=65535, help=say("help.port"), show_default=False)]
GrpcPort = Annotated[
    int | None, typer.Option("--grpc-port", min=1, max=65531, help=say("help.grpc_port"), show_default=False)
]


@app.command(help=say("help.up"))
def up(
    port: Port = None,
    grpc_port: GrpcPort = None,
    data_dir: DataDir = None,
    replicas: Annotated[str | None, typer.Option("--replicas", help=say("help.replicas"), show_default=False)] = None,
) -> None:
    """Run the whole stack until Ctrl-C or SIGTERM."""
    from cli.commands.up import up as run_up

    raise typer.Exit(run_up(port, grpc_port, data_dir, replicas))


@app.command(help=say("help.ask"))
def ask(
    question: Annotated[str | None, typer.Argument(help=say("help.question"), show_default=False)] = None,
    mode: Annotated[str | None, typer.Option("--mode", help=say("help.mode"), show_default=False)] = None,
    think: Annotated[Think, typer.Option("--think", help=say("help.think"))] = Think.AUTO,
    conversation: Annotated[
        str | None, typer.Option("--conversation", help=say("help.conversation"), show_default=False)
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help=say("help.model"), show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help=say("help.json"))] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Ask one question on a running stack."""
    from cli.commands.ask import ask as run_ask

    raise typer.Exit(run_ask(question, mode, think.value, conversation, model, as_json, url, data_dir))


@app.command(help=say("help.serve"))
def serve(service: Annotated[ServiceName, typer.Argument(help=say("help.service_run"))]) -> None:
    """Run one service in this process."""
    from cli.commands.serve import serve as run_serve

    run_serve(service.value)


@app.command(help=say("help.token"))
def token(
    user: Annotated[str, typer.Option("--user", help=say("help.user"))],
    subscription: Annotated[str, typer.Option("--subscription", help=say("help.subscription"))],
    admin: Annotated[bool, typer.Option("--admin", help=say("help.admin"))] = False,
    service: Annotated[str | None, typer.Option("--service", help=say("help.service"), show_default=False)] = None,
    data_dir: DataDir = None,
    minutes: Annotated[
        int | None, typer.Option("--minutes", min=1, max=527040, help=say("help.minutes"), show_default=False)
    ] = None,
) -> None:
    """Print a token on standard output."""
    from cli.commands.token import token as run_token

    print(run_token(user, subscription, admin, service, data_dir, minutes))


@app.command(help=say("help.migrate"))
def migrate(to: Annotated[Revision, typer.Option("--to", help=say("help.to"))] = Revision.HEAD) -> None:
    """Run every owner's migrations."""
    from cli.commands.migrate import migrate as run_migrate

    run_migrate(to.value)


@app.command(help=say("help.doctor"))
def doctor(data_dir: DataDir = None) -> None:
    """Report what is configured, reachable and missing."""
    from cli.commands.doctor import doctor as run_doctor

    raise typer.Exit(run_doctor(data_dir))


@app.command(help=say("help.tree"))
def tree(
    conversation: Annotated[str, typer.Argument(help=say("help.conversation_shown"))],
    as_json: Annotated[bool, typer.Option("--json", help=say("help.json_tree"))] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show a conversation's tree."""
    from cli.commands.tree import tree as run_tree

    run_tree(conversation, as_json, url, data_dir)


@app.command(help=say("help.demo"), hidden=True)
def demo(data_dir: DataDir = None) -> None:
    """Start the stack, ask a hard question, stay up."""
    from cli.commands.demo import demo as run_demo

    raise typer.Exit(run_demo(data_dir))


def run() -> None:
    """The entry point: every named failure becomes one line on standard error and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that can't write an icon shows a question mark instead of stopping us.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    raise SystemExit(_run())


def _run() -> int:
    try:
        check_locale()
        code: int | None = app(standalone_mode=False)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return failure.exit_code
    except typer.TyperException as error:
        if line := _one_line(error):
            print(line, file=sys.stderr)
        return getattr(error, "exit_code", WRONG_USAGE)
    # typer answers 130 for a Ctrl-C that came before a command could handle it.
    return FAILED if code == 130 else code or 0


def _one_line(error: typer.TyperException) -> str:
    format_message = getattr(error, "format_message", error.__str__)
    return " ".join(str(format_message()).split())


if __name__ == "__main__":
    run()
