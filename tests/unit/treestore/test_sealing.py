import base64
import dataclasses
import itertools
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.settings import BadSetting
from services.treestore.errors import DataLoss
from services.treestore.sealing import DataKey, Keyring, Place, Wrapped

PLACE = Place("message", "content", "row-1", "alice", 3)
KEY = DataKey(bytes(range(32)))
TEXT = "un secret très personnel".encode()


def setting(*ids: str, length: int = 32) -> str:
    return ",".join(f"{key_id}:{base64.b64encode(secrets.token_bytes(length)).decode()}" for key_id in ids)


@given(st.binary(max_size=2000))
def test_what_is_sealed_opens_at_its_place(value: bytes) -> None:
    assert KEY.open(PLACE, KEY.seal(PLACE, value)) == value


def test_a_sealed_value_is_a_version_byte_a_nonce_the_ciphertext_and_a_tag() -> None:
    sealed = KEY.seal(PLACE, TEXT)
    assert (sealed[0], len(sealed)) == (1, 1 + 12 + len(TEXT) + 16)


def test_sealing_twice_gives_two_nonces() -> None:
    assert KEY.seal(PLACE, TEXT)[1:13] != KEY.seal(PLACE, TEXT)[1:13]


@pytest.mark.parametrize(
    "change",
    [
        {"table": "run"},
        {"column": "title"},
        {"row": "row-2"},
        {"owner": "bob"},
        {"version": 4},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_value_moved_to_another_place_does_not_open(change: dict[str, object]) -> None:
    elsewhere = dataclasses.replace(PLACE, **change)  # type: ignore[arg-type]
    with pytest.raises(DataLoss) as loss:
        KEY.open(elsewhere, KEY.seal(PLACE, TEXT))
    assert loss.value.metadata == {"table": elsewhere.table, "column": elsewhere.column, "row": elsewhere.row}


def test_a_value_does_not_open_with_another_key() -> None:
    with pytest.raises(DataLoss):
        DataKey(bytes(32)).open(PLACE, KEY.seal(PLACE, TEXT))


def test_no_cut_of_a_value_opens() -> None:
    sealed = KEY.seal(PLACE, TEXT)
    for length in range(len(sealed)):
        with pytest.raises(DataLoss):
            KEY.open(PLACE, sealed[:length])


def test_no_flipped_bit_goes_unnoticed() -> None:
    sealed = KEY.seal(PLACE, TEXT)
    for index, bit in itertools.product(range(len(sealed)), (1, 128)):
        changed = bytearray(sealed)
        changed[index] ^= bit
        with pytest.raises(DataLoss):
            KEY.open(PLACE, bytes(changed))


@pytest.mark.parametrize("plain", [b"", TEXT, b"\x01" + TEXT * 3])
def test_a_plain_value_does_not_open(plain: bytes) -> None:
    with pytest.raises(DataLoss):
        KEY.open(PLACE, plain)


def test_a_loss_says_nothing_of_the_value() -> None:
    with pytest.raises(DataLoss) as loss:
        KEY.open(PLACE, TEXT)
    assert "secret" not in str(loss.value)


places = st.builds(Place, st.text(), st.text(), st.text(), st.text(), st.integers(0, 2**62))


@given(places, places)
def test_no_two_places_have_the_same_associated_data(one: Place, other: Place) -> None:
    assert (one.associated_data() == other.associated_data()) == (one == other)


def test_parts_of_a_place_can_not_slide_into_each_other() -> None:
    assert Place("ab", "c", "r", "o").associated_data() != Place("a", "bc", "r", "o").associated_data()


def test_the_first_key_wraps() -> None:
    keyring = Keyring(setting("new", "old"))
    assert keyring.create("c", "alice")[1].key_id == "new"


def test_a_data_key_wrapped_by_any_of_the_keys_is_unwrapped() -> None:
    old, new = setting("old"), setting("new")
    key, wrapped = Keyring(old).create("c", "alice")
    unwrapped = Keyring(f"{new},{old}").unwrap("c", "alice", wrapped)
    assert unwrapped.open(PLACE, key.seal(PLACE, TEXT)) == TEXT


def test_a_data_key_is_bound_to_its_conversation_and_owner() -> None:
    keyring = Keyring(setting("k"))
    _, wrapped = keyring.create("c", "alice")
    for conversation, owner in (("d", "alice"), ("c", "bob")):
        with pytest.raises(DataLoss):
            keyring.unwrap(conversation, owner, wrapped)


def test_an_unknown_key_id_is_a_loss_that_names_the_row() -> None:
    keyring = Keyring(setting("k"))
    _, wrapped = keyring.create("c", "alice")
    with pytest.raises(DataLoss) as loss:
        keyring.unwrap("c", "alice", Wrapped("gone", wrapped.dek))
    assert loss.value.metadata == {"table": "conversation", "column": "key_id", "row": "c"}


@pytest.mark.parametrize(
    "bad",
    ["", "k", "k:", f":{base64.b64encode(bytes(32)).decode()}", "k:not base64!", setting("k", length=16),
     setting("k", "k"), setting("k") + ","],
    ids=["nothing", "no key", "empty key", "no id", "not base64", "too short", "an id twice", "an empty pair"],
)  # fmt: skip
def test_a_bad_setting_is_refused_by_name_without_its_value(bad: str) -> None:
    with pytest.raises(BadSetting) as refusal:
        Keyring(bad)
    assert str(refusal.value).startswith("LINTELLO_ENCRYPTION_KEYS: ")
    assert all(len(part) < 6 or part not in str(refusal.value) for part in bad.split(":"))


def test_spaces_around_the_keys_do_not_matter() -> None:
    assert Keyring(f" {setting('a')} , {setting('b')} ").key_ids == ("a", "b")
