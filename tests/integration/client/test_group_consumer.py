"""Members of one group against our broker: share, commit, seek, pause, crash, leave."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from penstock.client import cluster, connection
from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic, delete_topic
from penstock.client.cluster import Client
from penstock.client.connection import Connection
from penstock.client.consume import ConsumedRecord
from penstock.client.group_consumer import GroupConsumer, RebalanceListener
from penstock.client.group_offsets import CommitFailed, NoOffset
from penstock.client.group_settings import GroupProtocol, GroupSettings, OffsetReset
from penstock.client.groups import committed_offsets, describe_group
from penstock.client.membership.assignor import ASSIGNORS
from penstock.client.membership.member import MembershipFailed
from penstock.client.offsets import delete_records
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.errors import ConfigError, ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.types import Offset, TopicPartition

CLASSIC, CONSUMER = GroupProtocol.CLASSIC, GroupProtocol.CONSUMER
PROTOCOLS = pytest.mark.parametrize("protocol", GroupProtocol, ids=lambda each: each.value)
_numbers = count()


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "100",
        "group.consumer.min.heartbeat.interval.ms": "50",
        "group.consumer.heartbeat.interval.ms": "100",
        "group.consumer.assignment.interval.ms": "0",
    }
    with EmbeddedBroker(settings=settings) as broker:
        yield broker.bootstrap


@pytest.fixture
def topic() -> str:
    return f"t{next(_numbers)}"


def run(bootstrap: str, scenario: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), Client(parse_addresses(bootstrap)) as client:
            await scenario(client)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


async def filled(client: Client, topic: str, values: int, partitions: int = 2) -> None:
    """Creates a topic with `values` records in each partition."""
    await create_topic(client, NewTopic(name=topic, partitions=partitions))
    await IdempotentProducer(client).send(
        ProducerRecord(topic, b"%d" % value, partition=partition)
        for value in range(values)
        for partition in range(partitions)
    )


def settings(protocol: GroupProtocol = CLASSIC, **others: object) -> GroupSettings:
    fields = {"offset_reset": OffsetReset.EARLIEST, "heartbeat_interval_ms": 50} | others
    return GroupSettings(protocol=protocol, **fields)  # type: ignore[arg-type]


@asynccontextmanager
async def member(
    client: Client,
    topic: str,
    wanted: GroupSettings,
    listener: RebalanceListener | None = None,
) -> AsyncIterator[GroupConsumer]:
    async with GroupConsumer(client, topic, wanted, listener=listener) as consumer:
        consumer.subscribe([topic])
        yield consumer


async def read(consumer: GroupConsumer, wanted: int) -> list[ConsumedRecord]:
    found: list[ConsumedRecord] = []
    while len(found) < wanted:
        found += await consumer.poll(100)
    return found


async def shared(members: Sequence[GroupConsumer], *sizes: int) -> None:
    """All members poll until they have `sizes` partitions."""
    while [len(each.assignment) for each in members] != list(sizes):
        for each in members:
            await each.poll(20)


class Recorder(RebalanceListener):
    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("assigned", len(partitions)))

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("revoked", len(partitions)))

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("lost", len(partitions)))


@pytest.mark.row("A035", "A048")
@PROTOCOLS
def test_members_share_partitions_and_take_over_those_of_leaving_members(
    bootstrap: str, topic: str, protocol: GroupProtocol
) -> None:
    async def scenario(client: Client) -> None:
        await filled(client, topic, 5)
        listener = Recorder()
        async with member(client, topic, settings(protocol), listener) as one:
            assert len(await read(one, 10)) == 10
            await one.commit()
            async with member(client, topic, settings(protocol)) as other:
                await shared([one, other], 1, 1)
                assert not one.assignment & other.assignment
            await shared([one], 2)
            assert await one.poll(50) == [], "what was committed is not read again"
        assert listener.events[0] == ("assigned", 2)
        assert listener.events[-1] == ("revoked", 2), "closing revokes"
        assert (await describe_group(client, topic)).members == ()

    run(bootstrap, scenario)


@pytest.mark.parametrize("assignor", ["roundrobin", "cooperative-sticky"])
def test_the_other_assignors_share_partitions_too(
    bootstrap: str, topic: str, assignor: str
) -> None:
    wanted = settings(assignors=(ASSIGNORS[assignor],))

    async def scenario(client: Client) -> None:
        await filled(client, topic, 1, partitions=4)
        listener = Recorder()
        async with member(client, topic, wanted, listener) as one:
            await shared([one], 4)
            async with member(client, topic, wanted) as other:
                await shared([one, other], 2, 2)
                assert (await describe_group(client, topic)).strategy == assignor
        eager = ("revoked", 4) in listener.events[:2]
        assert eager == (assignor == "roundrobin"), "a cooperative member keeps what stays its own"

    run(bootstrap, scenario)


@PROTOCOLS
def test_positions_are_committed_and_can_be_changed_by_seeking(
    bootstrap: str, topic: str, protocol: GroupProtocol
) -> None:
    place = TopicPartition(topic, 0)

    async def scenario(client: Client) -> None:
        await filled(client, topic, 10, partitions=1)
        async with member(client, topic, settings(protocol, max_poll_records=4)) as one:
            first = await read(one, 4)
            assert [each.record.offset for each in first] == [0, 1, 2, 3]
            assert one.position(place) == 4
            await one.commit()
            assert [each.record.offset for each in await read(one, 4)] == [4, 5, 6, 7]
            one.seek(place, Offset(9))
            assert [each.record.offset for each in await read(one, 1)] == [9]
        assert (await committed_offsets(client, topic))[place].offset == 4
        async with member(client, topic, settings(protocol)) as next_one:
            assert [each.record.offset for each in await read(next_one, 6)] == [4, 5, 6, 7, 8, 9]
            with pytest.raises(ConfigError, match="nowhere-0 is not assigned"):
                next_one.seek(TopicPartition("nowhere", 0), Offset(0))

    run(bootstrap, scenario)


def test_a_paused_partition_is_kept_and_resumes_at_its_position(bootstrap: str, topic: str) -> None:
    place = TopicPartition(topic, 0)

    async def scenario(client: Client) -> None:
        await filled(client, topic, 10, partitions=1)
        async with member(client, topic, settings(max_poll_records=3)) as one:
            await read(one, 3)
            one.pause([place])
            assert one.paused == {place}
            assert await one.poll(100) == []
            assert one.position(place) == 3
            one.resume([place])
            assert (await read(one, 1))[0].record.offset == 3

    run(bootstrap, scenario)


@PROTOCOLS
def test_a_pattern_finds_topics_that_are_created_later(
    bootstrap: str, topic: str, protocol: GroupProtocol
) -> None:
    async def scenario(client: Client) -> None:
        wanted = settings(protocol, metadata_max_age_ms=100)
        async with GroupConsumer(client, topic, wanted) as one:
            one.subscribe(pattern=f"{topic}-.*")
            await one.poll(50)
            await filled(client, f"{topic}-new", 2)
            await shared([one], 2)
            one.subscribe([f"{topic}-other"])
            await shared([one], 0)

    run(bootstrap, scenario)


def test_a_deleted_topic_does_not_stop_the_others(bootstrap: str, topic: str) -> None:
    async def scenario(client: Client) -> None:
        await filled(client, topic, 1, partitions=1)
        await filled(client, f"{topic}-gone", 1, partitions=1)
        wanted = settings(metadata_max_age_ms=100)
        async with GroupConsumer(client, topic, wanted) as one:
            one.subscribe([topic, f"{topic}-gone"])
            await read(one, 2)
            await one.commit()
            await delete_topic(client, f"{topic}-gone")
            await IdempotentProducer(client).send([ProducerRecord(topic, b"more")])
            assert [each.record.value for each in await read(one, 1)] == [b"more"]
            await shared([one], 1)

    run(bootstrap, scenario)


@PROTOCOLS
@pytest.mark.parametrize("polls_meanwhile", [True, False])
def test_a_topic_that_is_created_again_is_read_from_its_start(
    bootstrap: str, topic: str, protocol: GroupProtocol, *, polls_meanwhile: bool
) -> None:
    async def scenario(client: Client) -> None:
        await filled(client, topic, 2, partitions=1)
        async with member(client, topic, settings(protocol)) as consumer:
            await read(consumer, 2)
            await consumer.commit()
            await delete_topic(client, topic)
            if polls_meanwhile:
                await consumer.poll(300)
            client.forget()
            await filled(client, topic, 4, partitions=1)
            again = await read(consumer, 4)
            assert [each.record.value for each in again] == [b"0", b"1", b"2", b"3"]
            await consumer.commit()
            (at,) = (await committed_offsets(client, topic)).values()
            assert at.offset == 4

    run(bootstrap, scenario)


def test_without_an_offset_the_reset_policy_decides(bootstrap: str, topic: str) -> None:
    async def scenario(client: Client) -> None:
        await filled(client, topic, 3, partitions=1)
        async with member(client, topic, settings(offset_reset=OffsetReset.NONE)) as one:
            with pytest.raises(NoOffset, match=f"{topic}-0 has no valid offset of group {topic}"):
                await read(one, 1)
        async with member(client, topic, settings(offset_reset=OffsetReset.LATEST)) as one:
            await shared([one], 1)
            assert one.position(TopicPartition(topic, 0)) == 3
        # Before any read: records that a member has already fetched stay with it.
        await delete_records(client, {TopicPartition(topic, 0): Offset(2)})
        async with member(client, topic, settings()) as one:
            await shared([one], 1)
            one.seek(TopicPartition(topic, 0), Offset(0))
            assert (await read(one, 1))[0].record.offset == 2, "out of range: reset to earliest"

    run(bootstrap, scenario)


@PROTOCOLS
def test_records_written_between_two_members_are_read_even_with_the_policy_latest(
    bootstrap: str, topic: str, protocol: GroupProtocol
) -> None:
    wanted = settings(protocol, offset_reset=OffsetReset.LATEST, auto_commit_interval_ms=60_000)

    async def scenario(client: Client) -> None:
        await filled(client, topic, 3, partitions=1)
        async with member(client, topic, wanted) as first:
            await shared([first], 1)  # the member has nothing to read, and leaves
        await IdempotentProducer(client).send([ProducerRecord(topic, b"between")])
        async with member(client, topic, wanted) as second:
            assert [each.record.value for each in await read(second, 1)] == [b"between"]

    run(bootstrap, scenario)


@PROTOCOLS
def test_a_member_that_does_not_poll_loses_its_partitions(
    bootstrap: str, topic: str, protocol: GroupProtocol
) -> None:
    async def scenario(client: Client) -> None:
        await filled(client, topic, 3)
        listener = Recorder()
        wanted = settings(protocol, max_poll_interval_ms=400)
        async with member(client, topic, wanted, listener) as slow:
            await read(slow, 6)
            async with member(client, topic, settings(protocol)) as other:
                await shared([other], 2)
                with pytest.raises(CommitFailed):
                    await slow.commit({TopicPartition(topic, 0): Offset(1)})
                await shared([slow, other], 1, 1)
        assert ("lost", 2) in listener.events

    run(bootstrap, scenario)


def test_a_removed_member_rejoins(bootstrap: str, topic: str) -> None:
    """The coordinator removes a member without heartbeats, as after a network partition."""

    async def scenario(client: Client) -> None:
        await filled(client, topic, 3)
        listener = Recorder()
        wanted = settings(session_timeout_ms=150, heartbeat_interval_ms=5_000)
        async with member(client, topic, wanted, listener) as one:
            await read(one, 6)
            while (await describe_group(client, topic)).members:
                await asyncio.sleep(0.02)
            with pytest.raises(CommitFailed, match="UNKNOWN_MEMBER_ID"):
                await one.commit()
            assert len(await read(one, 6)) == 6
        assert listener.events[:3] == [("assigned", 2), ("lost", 2), ("assigned", 2)]

    run(bootstrap, scenario)


def test_auto_commit_covers_what_earlier_polls_returned(bootstrap: str, topic: str) -> None:
    place = TopicPartition(topic, 0)

    async def scenario(client: Client) -> None:
        await filled(client, topic, 5, partitions=1)
        wanted = settings(auto_commit_interval_ms=0, max_poll_records=2)
        async with member(client, topic, wanted) as one:
            await read(one, 2)
            assert (await committed_offsets(client, topic))[place].offset == 0
            await read(one, 2)
            assert (await committed_offsets(client, topic))[place].offset == 2
        assert (await committed_offsets(client, topic))[place].offset == 4, "closing commits"

    run(bootstrap, scenario)


def test_fatal_errors_of_the_coordinator_are_raised_by_poll(bootstrap: str, topic: str) -> None:
    async def scenario(client: Client) -> None:
        async with member(client, topic, settings(session_timeout_ms=1)) as one:
            with pytest.raises(MembershipFailed, match="INVALID_SESSION_TIMEOUT") as caught:
                await read(one, 1)
            assert caught.value.code == ErrorCode.INVALID_SESSION_TIMEOUT

    run(bootstrap, scenario)


def test_a_static_member_replaces_another_without_a_rebalance(bootstrap: str, topic: str) -> None:
    async def scenario(client: Client) -> None:
        await filled(client, topic, 1)
        async with member(client, topic, settings()) as other:
            await shared([other], 2)
            wanted = settings(instance_id="i")
            async with member(client, topic, wanted) as one:
                await shared([other, one], 1, 1)
            generation = other.group_metadata.generation
            async with member(client, topic, wanted) as again:
                await shared([other, again], 1, 1)
                assert other.group_metadata.generation == generation

    run(bootstrap, scenario)


def test_wrong_subscriptions_are_refused(bootstrap: str) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(ConfigError, match=r"group\.id must not be empty"):
            GroupConsumer(client, "")
        async with GroupConsumer(client, "g") as one:
            with pytest.raises(ConfigError, match="one of them"):
                one.subscribe()
            with pytest.raises(ConfigError, match="not RE2"):
                one.subscribe(pattern="(")

    run(bootstrap, scenario)


@PROTOCOLS
def test_members_survive_a_restart_of_the_broker(
    tmp_path: Path, topic: str, protocol: GroupProtocol
) -> None:
    """The coordinator stops and comes back; committed records are not read again."""
    broker_settings = {"group.initial.rebalance.delay.ms": "0"}

    async def scenario(first: EmbeddedBroker) -> None:
        port = parse_addresses(first.bootstrap)[0].port
        again = EmbeddedBroker(
            directory=tmp_path,
            settings=broker_settings | {"listeners": f"PLAINTEXT://127.0.0.1:{port}"},
        )
        async with asyncio.timeout(60), Client(parse_addresses(first.bootstrap)) as client:
            await filled(client, topic, 5)
            async with member(client, topic, settings(protocol)) as one:
                await read(one, 10)
                await one.commit()
                await asyncio.to_thread(first.__exit__, None, None, None)
                await one.poll(50)
                await asyncio.to_thread(again.__enter__)
                try:
                    await IdempotentProducer(client).send(
                        [ProducerRecord(topic, b"more", partition=0)]
                    )
                    assert [each.record.value for each in await read(one, 1)] == [b"more"]
                    await one.commit()
                finally:
                    await one.close()
                    await asyncio.to_thread(again.__exit__, None, None, None)

    first = EmbeddedBroker(directory=tmp_path, settings=broker_settings)
    first.__enter__()
    asyncio.run(scenario(first))


@pytest.mark.parametrize("turns", [0, 2, 4])
def test_a_cancelled_close_leaves_no_connection_open(
    bootstrap: str, topic: str, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled anywhere: after `turns` turns of the event loop."""
    opened: list[Connection] = []

    async def noted(*args: Any, **options: Any) -> Connection:
        opened.append(await connection.connect(*args, **options))
        return opened[-1]

    async def scenario(client: Client) -> None:
        await filled(client, topic, 1)
        opened.clear()
        consumer = GroupConsumer(client, topic, settings())
        is_read = asyncio.Event()

        async def read_and_close() -> None:
            async with consumer:
                consumer.subscribe([topic])
                await read(consumer, 2)
                is_read.set()

        async with asyncio.TaskGroup() as tasks:
            closing = tasks.create_task(read_and_close())
            await is_read.wait()
            for _ in range(turns):
                await asyncio.sleep(0)
            closing.cancel()
        assert opened
        assert not [each for each in opened if each.is_open]

    monkeypatch.setattr(cluster, "connect", noted)
    run(bootstrap, scenario)
