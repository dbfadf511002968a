import os
from pathlib import Path

import pytest

from cli.local.errors import FolderInUse, FolderUnusable
from cli.local.folder import ROOT_HOME, DataFolder, choose_path, open_folder


def test_the_argument_wins_over_the_environment(tmp_path: Path) -> None:
    assert choose_path(tmp_path / "a", {"LINTELLO_DATA_DIR": str(tmp_path / "b")}) == tmp_path / "a"


def test_the_environment_wins_over_the_default(tmp_path: Path) -> None:
    assert choose_path(None, {"LINTELLO_DATA_DIR": str(tmp_path / "b")}) == tmp_path / "b"


@pytest.mark.parametrize(("user", "expected"), [(0, ROOT_HOME), (1000, Path(".lintello"))])
def test_the_default_depends_on_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, expected: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert choose_path(None, {}) == tmp_path / expected


def test_a_relative_folder_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert choose_path(Path("here"), {}) == tmp_path / "here"


def test_a_folder_held_by_another_is_refused_by_its_name(tmp_path: Path) -> None:
    first, second = open_folder(tmp_path / "data"), open_folder(tmp_path / "data")
    first.acquire()
    with pytest.raises(FolderInUse, match=str(tmp_path / "data")):
        second.acquire()
    first.release()


def test_a_folder_given_back_can_be_taken_again(tmp_path: Path) -> None:
    first, second = open_folder(tmp_path / "data"), open_folder(tmp_path / "data")
    first.acquire()
    first.release()
    second.acquire()
    second.release()


def test_a_new_folder_is_closed_to_others_but_for_passing_through_as_root(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "data")
    assert folder.path.stat().st_mode & 0o777 == (0o711 if os.geteuid() == 0 else 0o700)
    assert {part.stat().st_mode & 0o777 for part in (folder.keys, folder.logs, folder.valkey)} == {0o700}


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o755)
    assert open_folder(tmp_path / "shared").path.stat().st_mode & 0o777 == 0o755


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderUnusable, match=str(tmp_path / "file" / "data")):
        open_folder(tmp_path / "file" / "data")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_of_another_users_is_named(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "data")
    folder.path.chmod(0o500)
    with pytest.raises(FolderUnusable, match=str(folder.path)):
        folder.acquire()


@pytest.mark.skipif(os.geteuid() != 0, reason="only as root does the server run as another user")
def test_as_root_a_closed_home_leads_to_the_same_place_each_time(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    folder = open_folder(tmp_path / "data")
    home = folder.database_home()
    try:
        assert DataFolder(folder.path).database_home() == home
        assert home.is_relative_to(ROOT_HOME / "databases")
    finally:
        home.parent.rmdir()
