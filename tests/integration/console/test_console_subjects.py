"""A cluster's subjects are requested when its topics change, not with each snapshot."""

import asyncio

from penstock.client.address import parse_addresses
from penstock.client.admin import NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.console.subjects import AGAIN_MS, DELAY, Subjects
from penstock.console.watch import ClusterWatch
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.clock import ManualClock


class Counting(Client):
    """Counts the requests made by `call`."""

    calls = 0

    async def call(self, *given, **named):  # type: ignore[no-untyped-def]
        self.calls += 1
        return await super().call(*given, **named)


async def followed(bootstrap: str) -> None:
    clock = ManualClock(1_000_000)
    async with Counting(parse_addresses(bootstrap)) as client:
        watch = ClusterWatch(client, clock)
        subjects = Subjects(watch)
        await subjects.follow()
        assert client.calls == 0, "there was no look yet"
        await create_topic(client, NewTopic(name="orders", partitions=1))
        await watch.look()
        await subjects.follow()
        assert watch.subjects == frozenset()
        before = client.calls
        await subjects.follow()
        assert client.calls == before
        clock.advance(AGAIN_MS)
        await subjects.follow()
        assert client.calls > before
        delay = NewTopic(name="later", partitions=1, configs={"penstock.delay.to": "orders"})
        await create_topic(client, delay)
        await watch.look()
        await subjects.follow()
        assert watch.subjects == {DELAY}


def test_subjects_are_requested_again_when_topics_change_and_after_a_minute() -> None:
    with EmbeddedBroker() as broker:
        asyncio.run(followed(broker.bootstrap))
