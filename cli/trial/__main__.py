"""`python -m cli.trial`: run the trial model until SIGTERM or Ctrl-C. Prints its base URL, and nothing else."""

import argparse
import asyncio
import signal
import sys

from cli.trial.server import DEFAULT_RATE, TrialServer


async def serve(arguments: argparse.Namespace) -> None:
    """Serve until told to stop. Raises OSError when the address can't be had."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = TrialServer(rate=arguments.rate, first_token_ms=arguments.first_token_ms, control=arguments.control)
    await server.start(arguments.host, arguments.port)
    try:
        print(server.base_url, flush=True)
        await stop.wait()
    finally:
        await server.stop()


def main() -> int:
    """Read the command line and serve; 2 when the address can't be had, with one line that says why."""
    parser = argparse.ArgumentParser(prog="python -m cli.trial", description="LintellO's trial model.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    parser.add_argument("--rate", type=float, default=DEFAULT_RATE, help="tokens a second; 0: no delay")
    parser.add_argument("--first-token-ms", type=float, default=0, help="wait before the first token")
    parser.add_argument("--control", action="store_true", help="offer /control: faults on command, ledger of calls")
    arguments = parser.parse_args()
    try:
        asyncio.run(serve(arguments))
    except (OSError, OverflowError) as refused:
        print(f"can't listen on {arguments.host}:{arguments.port}: {refused}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
