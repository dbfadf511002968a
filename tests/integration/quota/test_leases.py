"""Leases on a real Redis through the real service."""

import asyncio
import time

import pytest
from lintello.quota.v1 import quota_pb2 as pb
from redis.asyncio import Redis

from kit.errors import RemoteError
from kit.ids import new_id
from services.quota.leases import KEY
from tests.integration.quota.client import Quota


async def test_a_hundred_at_one_moment_take_exactly_twenty_slots(quota: Quota) -> None:
    answers = await asyncio.gather(*(quota.acquire() for _ in range(100)))
    assert sum(answer.granted for answer in answers) == 20
    assert len(await quota.held()) == 20


async def test_at_the_limit_the_denial_is_busy(hasty_quota: Quota) -> None:
    await hasty_quota.acquire()
    await hasty_quota.acquire()
    answer = await hasty_quota.acquire()
    assert answer == pb.AcquireLeaseResponse(denial=pb.DENIAL_BUSY, active=2, limit=2)


async def test_a_granted_lease_says_how_long_it_lasts_and_how_many_there_are(quota: Quota) -> None:
    await quota.acquire()
    answer = await quota.acquire()
    assert (answer.granted, answer.expires_in.seconds, answer.active, answer.limit) == (True, 30, 2, 20)


async def test_the_same_lease_asked_for_twice_takes_one_slot(quota: Quota) -> None:
    lease_id = new_id()
    await quota.acquire(lease_id)
    answer = await quota.acquire(lease_id.upper())
    assert (answer.granted, answer.active) == (True, 1)


async def test_a_lease_that_is_held_is_granted_again_at_the_limit(hasty_quota: Quota) -> None:
    lease_id = new_id()
    await hasty_quota.acquire(lease_id)
    await hasty_quota.acquire()
    assert (await hasty_quota.acquire(lease_id)).granted


async def test_a_released_slot_can_be_taken(hasty_quota: Quota) -> None:
    lease_id = new_id()
    await hasty_quota.acquire(lease_id)
    await hasty_quota.acquire()
    await hasty_quota.release(lease_id)
    assert (await hasty_quota.acquire()).granted


async def test_releasing_twice_is_the_same_answer(quota: Quota) -> None:
    lease_id = new_id()
    await quota.acquire(lease_id)
    assert await quota.release(lease_id) == await quota.release(lease_id)
    assert await quota.held() == []


async def test_a_lease_that_nobody_renews_expires(hasty_quota: Quota) -> None:
    await hasty_quota.acquire()
    await hasty_quota.acquire()
    await asyncio.sleep(0.6)
    assert (await hasty_quota.acquire()).active == 1


async def test_a_renewed_lease_outlives_its_first_expiry(hasty_quota: Quota, redis: Redis) -> None:
    lease_id = new_id()
    await hasty_quota.acquire(lease_id)
    first = await redis.zscore(KEY, lease_id)
    await asyncio.sleep(0.01)
    answer = await hasty_quota.renew(lease_id)
    last = await redis.zscore(KEY, lease_id)
    assert not answer.restored
    assert answer.expires_in.ToMilliseconds() == 500
    assert first is not None
    assert last is not None
    assert last > first


async def test_a_lost_lease_is_taken_again_by_its_renewal(quota: Quota, redis: Redis) -> None:
    lease_id = new_id()
    await quota.acquire(lease_id)
    await redis.delete(KEY)
    assert (await quota.renew(lease_id)).restored
    assert await quota.held() == [lease_id]


async def test_a_lost_lease_is_taken_again_past_the_limit_too(quota: Quota) -> None:
    lost = new_id()
    await asyncio.gather(*(quota.acquire() for _ in range(20)))
    assert (await quota.renew(lost)).restored
    assert (await quota.status()).active == 21


async def test_the_status_tells_the_lease_that_expires_first_in_front(quota: Quota) -> None:
    first, second = new_id(), new_id()
    await quota.acquire(first)
    await quota.acquire(second)
    await asyncio.sleep(0.01)
    await quota.renew(first)
    status = await quota.status()
    assert [lease.lease_id for lease in status.leases] == [second, first]
    assert (status.active, status.limit) == (2, 20)


async def test_expiry_is_told_by_the_redis_server_s_clock(quota: Quota, redis: Redis) -> None:
    before = await _server_milliseconds(redis)
    await quota.acquire()
    after = await _server_milliseconds(redis)
    lease = (await quota.status()).leases[0]
    assert before + 30_000 <= lease.expires_at.ToMilliseconds() <= after + 30_000


async def test_what_has_expired_is_dropped_by_every_call(quota: Quota, redis: Redis) -> None:
    held = new_id()
    for call in (quota.acquire(held), quota.renew(held), quota.release(held), quota.status()):
        await redis.zadd(KEY, {"expired": time.time() * 1000 - 60_000})
        await call
        assert await redis.zscore(KEY, "expired") is None


@pytest.mark.parametrize(
    "lease_id",
    [
        "",
        "run-1",
        "../" * 9,
        "x" * 10_240,
        "{0189d2a4-7c1e-7000-8000-000000000001}",
        "0189d2a47c1e70008000000000000001",
    ],
)
async def test_a_lease_id_that_is_no_uuid_is_refused_by_the_name_of_the_field(quota: Quota, lease_id: str) -> None:
    for call in (quota.acquire(lease_id), quota.renew(lease_id), quota.release(lease_id)):
        with pytest.raises(RemoteError) as refused:
            await call
        assert refused.value.reason == "INVALID_ARGUMENT"
        assert refused.value.fields == {"lease_id": "must be a UUID"}


async def _server_milliseconds(redis: Redis) -> int:
    seconds, microseconds = await redis.time()
    return int(seconds) * 1000 + int(microseconds) // 1000
