import base64
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cli.local.errors import KeyMissing
from cli.local.folder import DataFolder, open_folder
from cli.local.keys import create_missing_keys, encryption_file, public_key, read_keys


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return open_folder(tmp_path / "data")


def test_the_first_start_is_told_from_the_later_ones(folder: DataFolder) -> None:
    assert [create_missing_keys(folder) for _ in range(3)] == [True, False, False]


def test_keys_survive_a_second_start_unchanged(folder: DataFolder) -> None:
    create_missing_keys(folder)
    before = {path.name: path.read_bytes() for path in folder.keys.iterdir()}
    create_missing_keys(folder)
    assert {path.name: path.read_bytes() for path in folder.keys.iterdir()} == before


def test_only_their_owner_can_read_them_whatever_the_mask(folder: DataFolder) -> None:
    mask = os.umask(0)
    try:
        create_missing_keys(folder)
    finally:
        os.umask(mask)
    assert folder.keys.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.keys.iterdir()} == {0o600}


def test_the_encryption_key_is_named_and_has_32_random_bytes(folder: DataFolder) -> None:
    create_missing_keys(folder)
    kid, _, value = read_keys(folder).encryption_keys.partition(":")
    assert kid == "local"
    assert len(base64.b64decode(value, validate=True)) == 32


def test_each_signer_is_verified_by_the_public_key_of_its_name(folder: DataFolder) -> None:
    create_missing_keys(folder)
    keys = read_keys(folder)
    public = dict(entry.split(":", 1) for entry in keys.internal_public_keys.split(","))
    assert set(public) == {"gateway", "engine"}
    for name, setting in keys.internal_keys.items():
        kid, _, seed = setting.partition(":")
        signature = Ed25519PrivateKey.from_private_bytes(base64.b64decode(seed)).sign(b"token")
        Ed25519PublicKey.from_public_bytes(base64.b64decode(public[name])).verify(signature, b"token")
        assert kid == name


def test_a_start_cut_off_between_two_keys_makes_only_the_missing_ones(folder: DataFolder) -> None:
    create_missing_keys(folder)
    secret = (folder.keys / "jwt_secret").read_text()
    encryption_file(folder).unlink()
    (folder.keys / ".encryption_keys.new").write_text("half")
    assert create_missing_keys(folder) is True
    assert (folder.keys / "jwt_secret").read_text() == secret
    assert read_keys(folder).encryption_keys.startswith("local:")


@pytest.mark.parametrize("name", ["encryption_keys", "postgres_password"])
def test_a_lost_key_that_the_database_needs_is_named_and_not_replaced(folder: DataFolder, name: str) -> None:
    create_missing_keys(folder)
    folder.postgres.mkdir()
    (folder.postgres / "PG_VERSION").write_text("18\n")
    (folder.keys / name).unlink()
    with pytest.raises(KeyMissing, match=name):
        create_missing_keys(folder)
    assert not (folder.keys / name).exists()


def test_an_empty_key_file_is_a_missing_key(folder: DataFolder) -> None:
    create_missing_keys(folder)
    (folder.keys / "jwt_secret").write_text("")
    with pytest.raises(KeyMissing, match="jwt_secret"):
        read_keys(folder)


def test_no_secret_shows_in_the_keys_printed(folder: DataFolder) -> None:
    create_missing_keys(folder)
    keys = read_keys(folder)
    assert keys.jwt_secret not in repr(keys)


@pytest.mark.parametrize("setting", ["", "gateway", "gateway:AAAA", "gateway:***"])
def test_what_is_not_a_private_key_has_no_public_one(setting: str) -> None:
    with pytest.raises(ValueError):
        public_key(setting)
