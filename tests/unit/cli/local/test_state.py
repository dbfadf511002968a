import os
import subprocess
from pathlib import Path

import pytest

from cli.local.folder import DataFolder, open_folder
from cli.local.state import State, read_state, remove_state, write_state


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return open_folder(tmp_path / "data")


def _state(pid: int) -> State:
    return State(pid, {"gateway": "http://127.0.0.1:8080"}, {"engine": "127.0.0.1:50051"}, {"engine": 7}, True)


def test_what_is_written_is_read_back(folder: DataFolder) -> None:
    write_state(folder, _state(os.getpid()))
    assert read_state(folder) == _state(os.getpid())


def test_only_its_owner_can_read_it(folder: DataFolder) -> None:
    write_state(folder, _state(os.getpid()))
    assert folder.state.stat().st_mode & 0o777 == 0o600


def test_the_state_of_a_supervisor_that_died_is_ignored(folder: DataFolder) -> None:
    with subprocess.Popen(["/bin/sh", "-c", "exit"]) as dead:
        dead.wait()
    write_state(folder, _state(dead.pid))
    assert read_state(folder) is None


def test_a_folder_that_does_not_exist_has_no_stack(tmp_path: Path) -> None:
    assert read_state(DataFolder(tmp_path / "nothing")) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}'])
def test_a_file_that_is_not_a_state_is_ignored(folder: DataFolder, text: str) -> None:
    folder.state.write_text(text)
    assert read_state(folder) is None


def test_nothing_is_found_after_the_stop(folder: DataFolder) -> None:
    write_state(folder, _state(os.getpid()))
    remove_state(folder)
    remove_state(folder)
    assert read_state(folder) is None
