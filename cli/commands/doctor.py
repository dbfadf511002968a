"""`lintello doctor`: what is configured, reachable, missing."""

import asyncio
import os
import sys
from pathlib import Path

from cli.commands.checks import (
    Finding,
    check_auth,
    check_folder,
    check_keys,
    check_names_known,
    check_python,
    check_services,
)
from cli.commands.failure import DONE, FAILED
from cli.commands.model_check import check_model
from cli.commands.server_checks import check_database, check_redis
from cli.local.folder import DataFolder, choose_path
from cli.local.state import read_state
from cli.screen.report import print_report


def doctor(data_dir: Path | None) -> int:
    """Print the report: 0 when everything needed works, 1 otherwise. No secret is ever in it."""
    findings = asyncio.run(examine(DataFolder(choose_path(data_dir, os.environ))))
    print_report(findings, sys.stdout)
    return FAILED if any(finding.state == "failed" for finding in findings) else DONE


async def examine(folder: DataFolder) -> list[Finding]:
    """Everything there is to say, in the order in which it is shown."""
    state = read_state(folder)
    return [
        check_python(),
        check_names_known(os.environ),
        check_folder(folder),
        check_keys(folder),
        await check_database(folder, state),
        await check_redis(folder, state),
        *await check_model(os.environ),
        check_auth(),
        *await check_services(state),
    ]
