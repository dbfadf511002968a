"""What is derived for a run: keys and codes from its conversation's data key, which go with it, and a lock's number."""

import hashlib
import hmac
import uuid

from services.treestore.sealing import DataKey


def event_key(key: DataKey, run_id: uuid.UUID) -> bytes:
    """The key of 32 bytes that seals a run's events wherever they are kept."""
    return key.derive(b"lintello run events " + run_id.bytes)


def request_mac(key: DataKey, run_id: uuid.UUID, request_hash: bytes) -> bytes:
    """What is kept of a request's hash: enough to know it again, and nothing to try a guess of its text against."""
    return hmac.digest(key.derive(b"lintello request hash " + run_id.bytes), request_hash, "sha256")


def lock_number(owner: str, idempotency_key: str) -> int:
    """The number of the lock on a user's idempotency key. That two keys share one costs waiting and nothing else."""
    name = f"lintello idempotency {len(owner)} {owner} {idempotency_key}"
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8], signed=True)
