"""The delay service's transactions, with lists for the log, the target and the state."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from penstock.client.membership.member import GroupMetadata
from penstock.client.record_sender import ProducedRecord, ProducerRecord
from penstock.client.transactional_producer import TransactionalProducer
from penstock.record.record import Record
from penstock.retry.counts import DelayCounts
from penstock.retry.due_records import DueRecords
from penstock.retry.positions import Reread
from penstock.retry.progress import Bitmaps, StateKey, decode_floor
from penstock.retry.route_mover import RouteMover
from penstock.retry.state_topic import STATE_TOPIC
from penstock.retry.store.index import DueTimeIndex
from penstock.types import Offset, TopicPartition


class Crash(Exception):
    """The service has crashed."""


class World(Protocol):
    """The state that survives the service."""

    now_ms: int
    log: list[Record]
    topic: TopicPartition
    floor: Offset
    chunks: dict[int, Bitmaps]

    def arrived(self, record: ProducerRecord) -> None: ...


class Known(NamedTuple):
    partitions: tuple[int, ...] = (0,)


class AllThere:
    """All topics exist, each with one partition."""

    is_stale = False

    def get(self, _: str) -> Known:
        return Known()

    def leaderless(self, *_: object) -> None:
        return None

    async def refusal(self, _: str) -> None:
        return None


class _Clock:
    def __init__(self, world: World) -> None:
        self._world = world

    def now_ms(self) -> int:
        return self._world.now_ms

    def monotonic_ms(self) -> int:
        return self._world.now_ms


class _Producer:
    """Records become visible on commit, all or none."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._staged: list[ProducerRecord] = []
        self.crashes = "none"

    async def begin(self) -> None:
        self._staged = []

    async def deliver(
        self, records: Sequence[ProducerRecord], **_: object
    ) -> list[ProducedRecord | None]:
        found: list[ProducedRecord | None] = []
        for each in records:
            onward = sum(one.topic == self._world.topic.topic for one in self._staged)
            self._staged.append(each)
            is_onward = each.topic == self._world.topic.topic
            at = Offset(len(self._world.log) + onward)
            found.append(ProducedRecord(self._world.topic, at) if is_onward else None)
        return found

    async def send(self, records: Iterable[ProducerRecord]) -> None:
        self._staged += records

    async def send_offsets(self, _: Mapping[TopicPartition, Offset], __: GroupMetadata) -> None:
        """The group's offsets are only informative; the service starts from its own state."""

    async def commit(self) -> None:
        if self.crashes == "before commit":
            raise Crash
        for each in self._staged:
            self._apply(each)
        if self.crashes == "after commit":
            raise Crash

    def _apply(self, record: ProducerRecord) -> None:
        world = self._world
        if record.topic == world.topic.topic:
            at = (len(world.log), record.timestamp or 0, record.key, record.value)
            world.log.append(Record(*at, list(record.headers)))
        elif record.topic == STATE_TOPIC:
            chunk = StateKey.decode(record.key or b"").chunk
            if chunk is None:
                world.floor = decode_floor(record.value)
            elif record.value is None:
                world.chunks.pop(chunk, None)
            else:
                world.chunks[chunk] = Bitmaps.decode(record.value)
        else:
            world.arrived(record)


class _Due(DueRecords):
    """Reads due records from the world's log."""

    world: World

    async def _reread(self, parts: Sequence[Reread]) -> None:
        for part in parts:
            part.found |= {each: self.world.log[each] for each in part.wanted}
            part.wanted = []


class WorldMover(RouteMover):
    """The service's transactions; `crashes` says at which point the next one crashes."""

    def __init__(self, world: World, index: DueTimeIndex) -> None:
        self._fake = _Producer(world)
        clock, topics = cast("Any", _Clock(world)), cast("Any", AllThere())
        no_client = cast("Any", None)
        counts = DelayCounts()
        super().__init__(no_client, index, topics, transactional_id="t", clock=clock, counts=counts)
        due = _Due(no_client, index, topics, clock)
        due.world = world
        self._due = due

    def _new_producer(self) -> TransactionalProducer:
        return cast("TransactionalProducer", self._fake)

    def crash(self, when: str) -> None:
        self._fake.crashes = when
