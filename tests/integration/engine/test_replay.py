"""The replay log on a real Redis: what several processes write, read, repeat and close."""

import asyncio
import dataclasses
import secrets

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from kit.ids import new_id
from services.engine.adapters.replay import BATCH_BYTES, BATCH_EVENTS, RedisReplay
from services.engine.events import Content, Numbered
from services.engine.ports import ReplayBehind, ReplayClosed
from tests.integration.engine.log import DONE, LOST, Log, numbered, some, stored, stream_of


async def test_what_one_process_writes_another_reads_in_order(writer: Log, other: Log) -> None:
    events = [*some(1, 3), numbered(4, DONE)]
    await writer.append(*events[:1])
    await writer.append(*events[1:])
    assert await other.read() == events


async def test_reading_begins_after_the_number_given_and_stops_at_the_limit(writer: Log, other: Log) -> None:
    events = some(1, 9)
    await writer.append(*events)
    assert await other.read(after=3, limit=4) == events[3:7]


async def test_after_the_last_event_there_is_nothing_to_read(writer: Log) -> None:
    await writer.append(*some(1, 2))
    assert await writer.read(after=2) == []
    assert await writer.read(after=2**62) == []


async def test_of_a_run_nobody_wrote_there_is_nothing_to_read(writer: Log) -> None:
    assert await writer.read() == []


async def test_a_repeat_after_a_lost_reply_changes_nothing(writer: Log) -> None:
    events = some(1, 4)
    await writer.append(*events)
    await writer.append(*events)
    assert await writer.read() == events


async def test_a_repeat_that_holds_more_adds_only_that(writer: Log) -> None:
    events = [*some(1, 5), numbered(6, DONE)]
    await writer.append(*events[:3])
    await writer.append(*events[1:])
    assert await writer.read() == events


async def test_the_end_can_be_repeated_too(writer: Log) -> None:
    events = [*some(1, 2), numbered(3, DONE)]
    await writer.append(*events)
    await writer.append(*events[1:])
    assert await writer.read() == events


async def test_what_comes_late_to_a_log_that_another_process_has_closed_is_refused(writer: Log, other: Log) -> None:
    await writer.append(*some(1, 2))
    closing = [numbered(3, LOST), numbered(4, DONE)]
    await other.append(*closing)
    with pytest.raises(ReplayClosed):
        await writer.append(*some(3, 8))
    assert (await writer.read())[2:] == closing


async def test_a_late_event_of_another_number_than_those_that_closed_the_log_is_refused(
    writer: Log, other: Log
) -> None:
    await writer.append(*some(1, 2))
    await other.append(numbered(3, LOST), numbered(4, DONE))
    with pytest.raises(ReplayClosed):
        await writer.append(numbered(5))
    assert len(await writer.read()) == 4


async def test_a_repeat_that_goes_beyond_what_another_has_closed_is_refused_whole(writer: Log, other: Log) -> None:
    events = some(1, 6)
    await writer.append(*events[:2])
    await other.append(numbered(3, DONE))
    with pytest.raises(ReplayClosed):
        await writer.append(*events)
    assert len(await writer.read()) == 3


async def test_closing_a_log_that_its_writer_has_gone_on_with_is_refused(writer: Log, other: Log) -> None:
    events = some(1, 3)
    await writer.append(*events)
    with pytest.raises(ReplayClosed):
        await other.append(numbered(3, LOST), numbered(4, DONE))
    assert await other.read() == events


async def test_of_two_that_close_a_log_at_once_one_is_refused(writer: Log, other: Log, redis_url: str) -> None:
    await writer.append(*some(1, 2))
    third = RedisReplay(redis_url)
    closers = [other, Log(third, writer.run_id, writer.key)]
    ends = [[numbered(3, LOST), numbered(4, DONE)] for _ in closers]
    results = await asyncio.gather(
        *(closer.append(*end) for closer, end in zip(closers, ends, strict=True)), return_exceptions=True
    )
    await third.close()
    assert [type(result) for result in results if result is not None] == [ReplayClosed]
    assert (await writer.read(after=2)) == ends[results.index(None)]


async def test_a_log_that_lost_what_came_before_says_where_to_go_on(writer: Log, redis: Redis) -> None:
    events = some(1, 5)
    await writer.append(*events[:3])
    await redis.delete(stream_of(writer))
    with pytest.raises(ReplayBehind) as behind:
        await writer.append(*events[3:])
    assert behind.value.last_seq == 0
    await writer.append(*events)
    assert await writer.read() == events


async def test_a_log_that_lost_its_newest_events_says_where_to_go_on(writer: Log, redis: Redis) -> None:
    events = some(1, 6)
    await writer.append(*events[:5])
    await redis.delete(stream_of(writer))
    await writer.append(*events[:3])
    with pytest.raises(ReplayBehind) as behind:
        await writer.append(events[5])
    assert behind.value.last_seq == 3
    await writer.append(*events[3:])
    assert await writer.read() == events


@pytest.mark.parametrize(
    "count", [BATCH_EVENTS - 1, BATCH_EVENTS, BATCH_EVENTS + 1, 2 * BATCH_EVENTS + 1], ids=lambda count: str(count)
)
async def test_as_much_as_there_is_goes_in_several_writes(writer: Log, count: int) -> None:
    events = [*some(1, count - 1), numbered(count, DONE)]
    await writer.append(*events)
    read: list[Numbered] = []
    while batch := await writer.read(after=len(read)):
        read += batch
    assert read == events


async def test_large_events_go_one_by_one(writer: Log) -> None:
    events = [numbered(seq, Content("é" * BATCH_BYTES)) for seq in range(1, 4)]
    await writer.append(*events)
    assert await writer.read() == events


async def test_a_log_is_kept_an_hour_after_its_last_write(writer: Log, redis: Redis) -> None:
    await writer.append(numbered(1))
    await redis.expire(stream_of(writer), 60)
    await writer.append(numbered(2))
    assert 3590 <= await redis.ttl(stream_of(writer)) <= 3600


async def test_the_server_sees_neither_text_nor_conversation(writer: Log, redis: Redis) -> None:
    await writer.append(
        numbered(1, Content("CANARY")), numbered(2, dataclasses.replace(DONE, conversation_id="CANARY"))
    )
    entries = await stored(redis, writer)
    assert [entry_id for entry_id, _ in entries] == [b"0-1", b"0-2"]
    assert b"CANARY" not in repr(entries).encode()
    assert b"CANARY" not in (await redis.dump(stream_of(writer)) or b"CANARY")


@pytest.mark.parametrize("harm", ["moved", "changed", "cut", "empty", "of another run"])
async def test_an_event_that_does_not_open_ends_what_is_read_and_is_told_once_by_its_place(
    writer: Log, redis: Redis, harm: str
) -> None:
    events = some(1, 3)
    await writer.append(*events)
    stream = stream_of(writer)
    entries = await stored(redis, writer)
    sealed = entries[1][1][b"event"]
    if harm == "of another run":
        elsewhere = Log(writer.replay, new_id(), writer.key)
        await elsewhere.append(*events)
        sealed = (await stored(redis, elsewhere))[1][1][b"event"]
    put = {
        "moved": entries[2][1][b"event"],
        "changed": sealed[:-1] + bytes([sealed[-1] ^ 1]),
        "cut": sealed[:12],
        "empty": b"",
        "of another run": sealed,
    }[harm]
    await redis.delete(stream)
    for entry_id, value in (("0-1", entries[0][1][b"event"]), ("0-2", put), ("0-3", entries[2][1][b"event"])):
        await redis.xadd(stream, {"by": "x", "event": value}, entry_id)
    with capture_logs() as logs:
        assert await writer.read() == events[:1]
        assert await writer.read(after=1) == []
    assert [(log["event"], log["run_id"], log["seq"]) for log in logs] == [("event_unreadable", writer.run_id, 2)]
    assert "morceau" not in str(logs)


async def test_with_another_key_nothing_opens(writer: Log) -> None:
    await writer.append(numbered(1))
    with capture_logs():
        assert await writer.replay.read(writer.run_id, secrets.token_bytes(32), 0) == []


async def test_readers_that_leave_in_the_middle_take_no_connection_along(writer: Log) -> None:
    await writer.append(*some(1, 200))
    for _ in range(20):
        readers = [asyncio.create_task(writer.read()) for _ in range(20)]
        await asyncio.sleep(0)
        for reader in readers[::2]:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    assert len(await writer.read()) == 200


async def test_many_runs_at_once_are_kept_apart(writer: Log) -> None:
    logs = [Log(writer.replay, new_id(), secrets.token_bytes(32)) for _ in range(100)]
    await asyncio.gather(*(log.append(*some(1, 5)) for log in logs))
    assert [len(events) for events in await asyncio.gather(*(log.read() for log in logs))] == [5] * 100
