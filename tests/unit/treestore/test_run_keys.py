import uuid

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from services.treestore.run_keys import event_key, lock_number, request_mac
from services.treestore.sealing import DataKey

KEY, OTHER = DataKey(bytes(range(32))), DataKey(bytes(32))
ONE, TWO = uuid.UUID(int=1), uuid.UUID(int=2)


def test_an_event_key_is_hkdf_of_the_data_key_with_purpose_and_run_as_info() -> None:
    info = b"lintello run events " + ONE.bytes
    assert event_key(KEY, ONE) == HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(bytes(range(32)))


def test_an_event_key_is_stable_and_of_one_run_and_one_conversation() -> None:
    assert event_key(KEY, ONE) == event_key(KEY, ONE)
    assert len({event_key(KEY, ONE), event_key(KEY, TWO), event_key(OTHER, ONE)}) == 3


def test_what_is_kept_of_a_request_tells_run_conversation_and_request_apart() -> None:
    kept = [request_mac(key, run, bytes([byte]) * 32) for key in (KEY, OTHER) for run in (ONE, TWO) for byte in (1, 2)]
    assert len(set(kept)) == 8
    assert request_mac(KEY, ONE, bytes(32)) == request_mac(KEY, ONE, bytes(32))


@pytest.mark.parametrize("other", [("alice", "k2"), ("bob", "k"), ("alice k", ""), ("alic", "e k")])
def test_two_keys_have_two_locks(other: tuple[str, str]) -> None:
    assert lock_number("alice", "k") != lock_number(*other)


def test_a_lock_is_a_number_that_postgresql_takes() -> None:
    numbers = [lock_number("alice", str(index)) for index in range(100)]
    assert all(-(2**63) <= number < 2**63 for number in numbers)
    assert min(numbers) < 0 < max(numbers)
