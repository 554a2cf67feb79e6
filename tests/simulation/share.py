"""Members of a share group over the simulated network, and the promises of the group to them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock.client.address import Address
from penstock.errors import ErrorCode
from penstock.record.batch import batches
from penstock.record.dead_letter import read_dead_letter
from penstock.record.record import records
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
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
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from penstock.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from simulation.clients import LOST, Link
from simulation.history import DECOMPRESSED, History
from simulation.nemesis import everything
from simulation.world import SETTINGS, Plan, World

GROUP, CONFIG_OF_GROUPS = "queue", 32
ACCEPT, RELEASE, REJECT = 1, 2, 3
LETTERS = "dlq.queue"
LIMIT = 5
SHARE_SETTINGS = {
    "log.cleaner.enable": "false",  # the simulation has no threads
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
    "share.coordinator.state.topic.prune.interval.ms": "700",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "3000",
    "errors.deadletterqueue.auto.create.topics.enable": "true",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
GROUP_SETTINGS = {
    "share.auto.offset.reset": "earliest",
    "errors.deadletterqueue.topic.name": LETTERS,
}


@dataclass
class Queue:
    """What the members learned about the records of one partition."""

    world: World
    where: TopicPartition
    accepted: dict[int, str] = field(default_factory=dict)
    """Offsets whose acknowledgement was confirmed, and by which member."""
    tried: set[int] = field(default_factory=set)
    """Offsets whose acknowledgement may have been written."""
    deliveries: Counter[int] = field(default_factory=Counter)
    rejected: set[int] = field(default_factory=set)
    """Offsets whose rejection was confirmed."""

    @property
    def history(self) -> History:
        return self.world.history

    def delivered(self, offsets: Iterable[int], member: str, leader: Address) -> None:
        state = self.world.state(self.where)
        is_led = state is not None and leader.host == f"broker-{state['leader']}"
        if not is_led:  # a former leader that does not know it yet, and cannot store their outcome
            self.history.count("delivered by a former leader")
        for offset in offsets:
            self.history.count("delivered")
            self.deliveries[offset] += 1
            if is_led and offset in self.accepted:
                self.history.broken(
                    f"{self.where} {offset}: {member} gets what {self.accepted[offset]} accepted"
                )

    def lacks(self, end: int) -> list[int]:
        """Records that no member has finished, and that were not rejected."""
        done = self.accepted.keys() | self.tried
        letters = self.letters()
        return [
            offset
            for offset in range(end)
            if (offset not in done and self.deliveries[offset] < LIMIT and not letters[offset])
            or (offset in self.rejected and not letters[offset])
        ]

    def letters(self) -> Counter[int]:
        """The number of dead letters of each record."""
        found: Counter[int] = Counter()
        for broker in self.world.brokers:
            part = self.world.partition(broker.number, TopicPartition(LETTERS, 0))
            if part is None or not part.leads:
                continue
            log = part.log
            at = log.log_start_offset
            while read := log.read(at, 1 << 20, up_to=log.high_watermark, min_one_batch=True):
                data = read.read()
                for position, header in batches(data):
                    for each in records(data[position:], header, DECOMPRESSED):
                        letter = read_dead_letter(each.headers)
                        if letter is not None and letter.partition == self.where.partition:
                            found[letter.offset or 0] += 1
                    at = header.next_offset
        return found

    def check_letters(self) -> None:
        for offset, count in self.letters().items():
            self.history.count("dead letters")
            if count > 1:
                self.history.broken(f"{self.where} {offset}: {count} dead letters")
            if offset in self.accepted:
                self.history.broken(
                    f"{self.where} {offset}: a dead letter, and {self.accepted[offset]} accepted it"
                )


@dataclass
class Member:
    """Fetches from the leader of one partition; accepts most records, and releases some."""

    name: str
    link: Link
    queue: Queue
    epoch: int = 0
    heartbeat_epoch: int = 0
    is_joined: bool = False

    async def run(self, is_over: Callable[[], bool]) -> None:
        chance, where = self.link.chance, self.queue.where
        while not is_over():
            try:
                if not self.is_joined:
                    await self._join()
                found = await self.link.leader(where)
                self.epoch = 0
                while found is not None and not is_over() and await self._worked(*found):
                    if chance.random() < 0.05:
                        break
                    await asyncio.sleep(chance.uniform(0.01, 0.2))
            except LOST:
                self.queue.history.count("share requests lost")
            if chance.random() < 0.3:
                self.link.close()
            await asyncio.sleep(chance.uniform(0.01, 0.3))

    async def _join(self) -> None:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        found = (await self.link.anyone(request, FindCoordinatorResponse)).coordinators[0]
        if found.error_code:
            return
        reply = await self.link.call(
            Address(found.host, found.port),
            ShareGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=self.name,
                subscribed_topic_names=[self.queue.where.topic],
            ),
            ShareGroupHeartbeatResponse,
        )
        self.is_joined = reply.error_code == 0 and reply.assignment is not None

    async def _worked(self, address: Address, topic_id: Uuid) -> bool:
        """One fetch, and an acknowledgement of its records; False: look for the leader again."""
        part = FetchPartition(self.queue.where.partition, [])
        request = ShareFetchRequest(
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=self.epoch,
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=10,
            batch_size=10,
            topics=[FetchTopic(topic_id, [part])],
        )
        answer = await self.link.call(address, request, ShareFetchResponse)
        if answer.error_code:
            return False
        self.epoch += 1
        parts = [part for topic in answer.responses for part in topic.partitions]
        for reported in parts:
            if reported.error_code:
                name = ErrorCode(reported.error_code).name
                self.queue.history.count(f"share fetch refused: {name}")
                self.is_joined = self.is_joined and name != "UNKNOWN_TOPIC_OR_PARTITION"
                return False
            if not await self._acknowledged(address, topic_id, reported):
                return False
        return True

    async def _acknowledged(
        self, address: Address, topic_id: Uuid, reported: PartitionData
    ) -> bool:
        offsets = [
            offset
            for each in reported.acquired_records
            for offset in range(each.first_offset, each.last_offset + 1)
        ]
        if not offsets:
            return True
        queue, chance = self.queue, self.link.chance
        queue.delivered(offsets, self.name, address)
        await asyncio.sleep(chance.uniform(0, 0.3))
        if chance.random() < 0.05:
            return False  # the session forgets them
        said = {each: self._verdict() for each in offsets}
        accepted = [each for each, kind in said.items() if kind == ACCEPT]
        queue.tried |= set(accepted)
        given = [AcknowledgementBatch(each, each, [kind]) for each, kind in said.items()]
        part = AcknowledgePartition(queue.where.partition, given)
        answer = await self.link.call(
            address,
            ShareAcknowledgeRequest(
                group_id=GROUP,
                member_id=self.name,
                share_session_epoch=self.epoch,
                topics=[AcknowledgeTopic(topic_id, [part])],
            ),
            ShareAcknowledgeResponse,
        )
        self.epoch += 1
        if answer.error_code:
            return False
        (done,) = [part for topic in answer.responses for part in topic.partitions]
        if done.error_code:
            name = ErrorCode(done.error_code).name
            queue.history.count(f"acknowledgement refused: {name}")
            return False
        for offset in accepted:
            queue.history.count("accepted")
            queue.accepted[offset] = self.name
        queue.rejected |= {each for each, kind in said.items() if kind == REJECT}
        return True

    def _verdict(self) -> int:
        luck = self.link.chance.random()
        return ACCEPT if luck < 0.85 else RELEASE if luck < 0.93 else REJECT


async def configured(link: Link) -> None:
    """The group starts with the first record, and has dead letters."""
    wanted = [AlterableConfig(name, 0, text) for name, text in GROUP_SETTINGS.items()]
    request = IncrementalAlterConfigsRequest(
        [AlterConfigsResource(CONFIG_OF_GROUPS, GROUP, wanted)]
    )
    while True:
        try:
            reply = await link.anyone(request, IncrementalAlterConfigsResponse)
            if not any(each.error_code for each in reply.responses):
                return
        except LOST:
            pass
        await asyncio.sleep(0.1)


async def members_and_faults(world: World) -> None:
    """Whatever fails, no record is lost, no accepted one is delivered again, and each rejected one
    has one dead letter.
    """
    is_over = False
    queues = [Queue(world, where) for where in world.partitions]
    async with asyncio.TaskGroup() as tasks:
        await world.spawn(tasks, "admin", configured(world._link("admin")))
        for queue in queues:
            for number in range(2):
                name = f"member-{queue.where.partition}-{number}"
                member = Member(name, world._link(name), queue)
                world.spawn(tasks, name, member.run(lambda: is_over))
        await everything(world)
        await world.heal()
        ends = {queue.where: high_watermark(world, queue.where) for queue in queues}
        try:
            async with asyncio.timeout(world.plan.heal_s):
                while any(queue.lacks(ends[queue.where]) for queue in queues):
                    await asyncio.sleep(0.2)
        except TimeoutError:
            for queue in queues:
                lacks = queue.lacks(ends[queue.where])
                world.history.broken(
                    f"{queue.where} of {ends[queue.where]}: {lacks} never finished"
                )
        for queue in queues:
            queue.check_letters()
        is_over = True


def high_watermark(world: World, where: TopicPartition) -> int:
    found = [world.partition(each.number, where) for each in world.brokers]
    return max(each.log.high_watermark for each in found if each is not None and each.leads)


def share_world(plan: Plan) -> World:
    world = World(plan)
    for broker in world.brokers:
        broker._settings = {**SETTINGS, **SHARE_SETTINGS}
    return world


FAULTS = (
    "kill",
    "pause",
    "long pause",
    "cut from brokers",
    "cut from the store",
    "slow",
    "connections",
    "stop",
    "expire",
    "move",
    "prefer",
    "depose",
)
