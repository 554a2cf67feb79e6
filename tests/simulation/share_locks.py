"""A thousand locks of a share group while the leader, the coordinator and members are killed."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from penstock.client.address import Address
from penstock.testing.logs import batch_of
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.create_topics import CreateTopicsResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.wire.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from penstock.wire.messages.share_fetch import (
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from simulation.clients import LOST, Link
from simulation.share import (
    ACCEPT,
    GROUP,
    LIMIT,
    REJECT,
    SHARE_SETTINGS,
    Member,
    Queue,
    configured,
    high_watermark,
)
from simulation.world import SETTINGS, Plan, World

HELD = TopicPartition("held", 0)
STATE = TopicPartition("__share_group_state", 0)
LOCKS = 1000
LOCK_S = 10
HOLDERS = 4
VICTIMS = ("leader", "coordinator", "member") * 2


@dataclass
class Holder:
    """A member that locks as many records as it can, and acknowledges on request."""

    member: Member
    held: dict[int, float] = field(default_factory=dict)
    """Locked offsets, and when each was delivered."""
    place: tuple[Address, Uuid] | None = None

    @property
    def queue(self) -> Queue:
        return self.member.queue

    def forget_expired(self) -> None:
        """A late acknowledgement may be answered without an error: the leader ignores offsets that
        others have finished meanwhile, as Kafka's does.
        """
        since_s = asyncio.get_running_loop().time() - LOCK_S + 1
        self.held = {each: at_s for each, at_s in sorted(self.held.items()) if at_s > since_s}

    async def lock(self) -> None:
        """One fetch. If it fails, its session and its locks are gone."""
        member, link = self.member, self.member.link
        self.forget_expired()
        try:
            if not member.is_joined:
                await member._join()
            if self.place is None:
                self.place, member.epoch = await link.leader(HELD), 0
            if self.place is None or not member.is_joined:
                return
            address, topic_id = self.place
            request = ShareFetchRequest(
                group_id=GROUP,
                member_id=member.name,
                share_session_epoch=member.epoch,
                max_wait_ms=100,
                min_bytes=1,
                max_bytes=1 << 20,
                max_records=100,
                batch_size=100,
                topics=[FetchTopic(topic_id, [FetchPartition(0, [])])],
            )
            answer = await link.call(address, request, ShareFetchResponse)
            parts = [part for topic in answer.responses for part in topic.partitions]
        except LOST:
            self.gone()
            return
        if answer.error_code or any(each.error_code for each in parts):
            self.gone()
            return
        member.epoch += 1
        for each in (one for part in parts for one in part.acquired_records):
            offsets = range(each.first_offset, each.last_offset + 1)
            self.queue.delivered(offsets, member.name, address)
            if each.delivery_count > LIMIT:
                self.queue.history.broken(f"{HELD} {offsets}: delivery {each.delivery_count}")
            self.held |= dict.fromkeys(offsets, asyncio.get_running_loop().time())

    async def acknowledge(self) -> None:
        """Acknowledge the older half: most are accepted, a few rejected. The rest stays locked."""
        member, queue = self.member, self.queue
        self.forget_expired()
        if self.place is None or not self.held:
            return
        address, topic_id = self.place
        half = list(self.held)[: len(self.held) // 2 + 1]
        said = {each: REJECT if member.link.chance.random() < 0.01 else ACCEPT for each in half}
        queue.tried |= {each for each, kind in said.items() if kind == ACCEPT}
        given = [AcknowledgementBatch(each, each, [kind]) for each, kind in said.items()]
        request = ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=member.name,
            share_session_epoch=member.epoch,
            topics=[AcknowledgeTopic(topic_id, [AcknowledgePartition(0, given)])],
        )
        try:
            answer = await member.link.call(address, request, ShareAcknowledgeResponse)
            parts = [part for topic in answer.responses for part in topic.partitions]
        except LOST:
            self.gone()
            return
        if answer.error_code or any(each.error_code for each in parts):
            self.gone()
            return
        member.epoch += 1
        for each in half:
            self.held.pop(each, None)
        for each, kind in said.items():
            if kind == REJECT:
                queue.rejected.add(each)
                continue
            if each in queue.accepted:
                queue.history.broken(f"{HELD} {each} is accepted twice")
            queue.history.count("accepted")
            queue.accepted[each] = member.name

    def gone(self) -> None:
        self.member.link.close()
        self.held, self.place = {}, None


async def filled(world: World, link: Link, batches: int) -> None:
    """Write this many batches of a hundred records, each until it is acknowledged."""
    for _ in range(batches):
        batch = batch_of(*(b"%d" % each for each in range(100)))
        while True:
            try:
                found = await link.leader(HELD)
                if found is not None:
                    part = PartitionProduceData(index=0, records=batch)
                    topic = TopicProduceData(
                        name=HELD.topic, topic_id=found[1], partition_data=[part]
                    )
                    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
                    answer = await link.call(found[0], request, ProduceResponse)
                    if not answer.responses[0].partition_responses[0].error_code:
                        break
            except LOST:
                world.history.count("produce requests lost")
            await asyncio.sleep(0.1)


async def until(
    world: World, done: Callable[[], bool], step: Callable[[], Awaitable[None]]
) -> None:
    try:
        async with asyncio.timeout(world.plan.heal_s):
            while not done():
                await step()
                await asyncio.sleep(0.01)
    except TimeoutError:
        world.history.broken(f"not within {world.plan.heal_s:g} s")


async def kills_under_locks(world: World) -> None:
    """Each record is accepted once, or delivered again within its limit; none is lost."""
    queue, link = Queue(world, HELD), world._link("admin")
    holders = [
        Holder(Member(f"holder-{n}", world._link(f"holder-{n}"), queue)) for n in range(HOLDERS)
    ]

    async def create() -> None:
        try:
            await link.anyone(
                world.creation(HELD.topic, {"min.insync.replicas": "2"}), CreateTopicsResponse
            )
        except LOST:
            world.history.count("create requests lost")

    async def lock() -> None:
        for each in holders:
            await each.lock()

    async def rest() -> None:
        await asyncio.sleep(0.1)

    async def drain() -> None:
        await lock()
        for each in holders:
            await each.acknowledge()

    def is_locked() -> bool:
        return sum(len(each.held) for each in holders) >= LOCKS

    def is_whole() -> bool:
        return all(each.is_up and each.running for each in world.brokers) and all(
            map(world._is_in_sync, (HELD, STATE))
        )

    async def scenario() -> None:
        await until(world, lambda: world.state(HELD) is not None, create)
        await configured(link)
        await filled(world, link, 5)
        for victim in VICTIMS:
            await filled(world, link, 10)
            await until(world, is_locked, lock)
            await until(world, is_whole, rest)
            world.history.count(f"{LOCKS} locks and a kill: {victim}")
            async with asyncio.TaskGroup() as tasks:
                for each in holders[victim == "member" :]:
                    world.spawn(tasks, each.member.name, each.acknowledge())
                await asyncio.sleep(world.chance.uniform(0, 0.02))
                if victim == "member":
                    holders[0].gone()
                else:
                    state = world.state(HELD if victim == "leader" else STATE)
                    assert state is not None
                    world.brokers[int(str(state["leader"]))].kill()
            await asyncio.sleep(world.chance.uniform(0, 2))
            for broker in world.brokers:
                if not broker.is_up:
                    broker.start(world.tasks)
        await until(world, is_whole, rest)
        end = high_watermark(world, HELD)
        await until(world, lambda: not queue.lacks(end), drain)
        lacks = queue.lacks(end)
        if lacks:
            world.history.broken(f"{HELD} of {end}: {lacks} never finished")
        queue.check_letters()

    async with asyncio.TaskGroup() as tasks:
        world.spawn(tasks, "admin", scenario())


def locked_world(plan: Plan) -> World:
    world = World(plan)
    once = {
        "share.coordinator.state.topic.num.partitions": "1",
        "group.share.record.lock.duration.ms": str(LOCK_S * 1000),
        # All that a run writes: finished records behind a lock count too.
        "group.share.max.partition.max.record.locks": "10000",
        "group.share.partition.max.record.locks": "10000",
    }
    for broker in world.brokers:
        broker._settings = {**SETTINGS, **SHARE_SETTINGS, **once}
    return world
