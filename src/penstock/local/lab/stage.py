"""A real cluster for a scenario: actions on it, and observations."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import TypeVar

import msgspec

from penstock.broker.pages.replicas import Replica as Page
from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.client.consume import SimpleConsumer
from penstock.client.errors import RequestTimedOut, check
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.offsets import list_offsets
from penstock.client.route import ToLeader
from penstock.counted import counted
from penstock.local.cluster import LocalCluster
from penstock.local.lab.narration import ReplicaSnapshot
from penstock.local.process import polls
from penstock.local.temporary import temporary_cluster
from penstock.record.build import build_batch
from penstock.record.record import Record
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

T = TypeVar("T")
PATIENCE_S = 30.0
ALL = -1
FETCH_WAIT_MS = 100
PATIENT = {
    # A paused broker must count as slow, not as dead.
    "zookeeper.session.timeout.ms": "60000",
    "replica.lag.time.max.ms": "60000",
    "auto.leader.rebalance.enable": "false",
    "replica.fetch.wait.max.ms": str(FETCH_WAIT_MS),
}


@contextmanager
def stage(settings: Mapping[str, str]) -> "Iterator[LabCluster]":
    """Three brokers, with broker 0 as controller; everything is deleted afterwards."""
    with temporary_cluster(3, {**PATIENT, **settings}, one_by_one=True) as cluster:
        yield LabCluster(cluster)


class LabCluster:
    """The cluster of one scenario; topics have one partition, led by its first replica."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._paused: set[int] = set()

    # Actions.

    def create(
        self, topic: str, replicas: Sequence[int], configs: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(
            name=topic, assignments=[tuple(map(BrokerId, replicas))], configs=configs or {}
        )

        async def work(client: Client) -> None:
            await create_topic(client, new)

        self._ask(work)
        self.until(
            f"the replicas of {topic}",
            lambda: sum(each.role != "away" for each in self.replicas(topic)) == len(replicas),
        )

    def write(self, topic: str, *values: str, acks: int = 1, timeout_ms: int = 10_000) -> None:
        """Write each value in its own batch; raises the broker's error."""

        def raise_refusal(response: ProduceResponse) -> None:
            for each in response.responses:
                for part in each.partition_responses:
                    check(part.error_code, topic, part.error_message)

        async def work(client: Client) -> None:
            (topic_id,) = [each.id for each in await client.topics([topic])]
            for value in values:
                batch = build_batch([Record(0, 0, None, value.encode(), [])])
                part = PartitionProduceData(index=0, records=bytes(batch))
                data = TopicProduceData(name=topic, topic_id=topic_id, partition_data=[part])
                await client.call(
                    ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data]),
                    ProduceResponse,
                    to=ToLeader(TopicPartition(topic, 0)),
                    check=raise_refusal,
                    retry_on=frozenset(),  # a retry would write a second record
                )

        self._ask(work)

    def pause(self, broker: int) -> None:
        """Stop the broker's process. Waits long enough that its last fetch, which may be waiting at
        the leader, was answered.
        """
        self._cluster.pause(broker)
        self._paused.add(broker)
        time.sleep(3 * FETCH_WAIT_MS / 1000)

    def resume(self, broker: int) -> None:
        self._cluster.resume(broker)
        self._paused.discard(broker)

    def kill(self, broker: int) -> None:
        self._cluster.stop(broker, kill=True)

    def start(self, broker: int) -> None:
        self._cluster.start(broker)

    # Observations.

    def replicas(self, topic: str) -> list[ReplicaSnapshot]:
        """Each replica as its broker reports it; for a broker that is down, the log end that
        the leader knows.
        """
        pages = {each.broker: each for each in self._pages(topic)}
        leader = next((each for each in pages.values() if each.leader == each.broker), None)
        if leader is None:
            return [_snapshot(each, "follower", in_sync=False) for each in pages.values()]
        found = []
        for broker in leader.replicas:
            in_sync = broker in leader.isr
            if broker in pages:
                role = "leader" if broker == leader.broker else "follower"
                found.append(_snapshot(pages[broker], role, in_sync=in_sync))
            else:
                end = leader.follower_ends.get(broker, -1)
                known = end if end >= 0 else None
                role = "paused" if broker in self._paused else "away"
                found.append(ReplicaSnapshot(broker, role, known, None, in_sync))
        return found

    def leaders(self, topic: str) -> set[int]:
        """The leaders that live brokers report; -1 for none."""
        return {each.leader for each in self._pages(topic)}

    def ends(self, topic: str) -> dict[int, int | None]:
        return {each.broker: each.log_end_offset for each in self.replicas(topic)}

    def readable(self, topic: str) -> list[str]:
        """The values that a consumer reads from the beginning."""
        topic_partition = TopicPartition(topic, 0)

        async def work(client: Client) -> list[str]:
            starts = await list_offsets(client, {topic_partition: EARLIEST})
            ends = await list_offsets(client, {topic_partition: LATEST})
            found: list[str] = []
            positions = {topic_partition: starts[topic_partition].offset}
            async with SimpleConsumer(
                client, positions, ends={topic_partition: ends[topic_partition].offset}
            ) as consumer:
                while consumer.unfinished:
                    found += [(each.record.value or b"").decode() for each in await consumer.poll()]
            return found

        return self._ask(work)

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        for _ in polls(PATIENCE_S):
            if holds():
                return
        raise RequestTimedOut(f"waited {PATIENCE_S:g} s for {what}")

    def copied(self, topic: str, count: int) -> None:
        """Wait until every replica has `count` records and a high watermark of `count`."""

        def everywhere() -> bool:
            found = self.replicas(topic)
            known = {(each.log_end_offset, each.high_watermark) for each in found}
            return known == {(count, count)} and all(each.in_sync for each in found)

        self.until(f"{counted(count, 'record')} of {topic} on every replica", everywhere)

    def _active(self) -> list[int]:
        return [each for each in self._cluster.pids() if each not in self._paused]

    def _pages(self, topic: str) -> list[Page]:
        found: list[Page] = []
        for broker in self._active():
            connection = HTTPConnection(self._cluster.http(broker), timeout=5)
            try:
                connection.request("GET", f"/replicas?topic={topic}")
                found += msgspec.json.decode(connection.getresponse().read(), type=list[Page])
            except (OSError, HTTPException) as error:
                raise RequestTimedOut(f"broker {broker}: {error}") from None
            finally:
                connection.close()
        return found

    def _ask(self, work: Callable[[Client], Awaitable[T]]) -> T:
        addresses = [self._cluster.plan.address(each) for each in self._active()]

        async def connected() -> T:
            async with Client(parse_addresses(",".join(addresses)), client_id="lab") as client:
                return await work(client)

        return asyncio.run(connected())


def _snapshot(page: Page, role: str, *, in_sync: bool) -> ReplicaSnapshot:
    return ReplicaSnapshot(page.broker, role, page.log_end_offset, page.high_watermark, in_sync)
