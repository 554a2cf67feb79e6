"""The delay service: reads delay and retry topics, and moves records to their targets when due.

One loop reads new records into the index, then delivers due records. Each route delivers in its own
transaction, together with the progress and the group's offsets. The offsets fence a member whose
partitions have moved: its transactions cannot commit. So a crash at any point neither loses nor
repeats a record.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NoReturn

from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord
from penstock.client.group_consumer import GroupConsumer, RebalanceListener
from penstock.client.group_settings import GroupSettings, OffsetReset
from penstock.client.leader_logs import LeaderLog, leader_logs
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.metadata import NO_LEADER
from penstock.client.offsets import delete_records, list_offsets
from penstock.clock import Clock, SystemClock
from penstock.config.delay_route import Route
from penstock.errors import KafkaError
from penstock.retry.counts import DelayCounts
from penstock.retry.partition import DelayPartition, stored_key
from penstock.retry.positions import TopicMadeAnew
from penstock.retry.progress import Progress
from penstock.retry.route_mover import RouteMover
from penstock.retry.state_topic import create_state_topic, load_progress
from penstock.retry.store.index import DueTimeIndex, Entry, IndexKey, StoreChanged
from penstock.retry.topics import Topics
from penstock.types import BrokerId, Offset, TopicPartition, Uuid

GROUP: Final = "penstock-delay"
SESSION_MS: Final = 6_000
"""How long the partitions of a killed instance wait: the least that brokers allow by default."""
IDLE_MS: Final = 500
UNREAD_MS: Final = 20
TRIM_MS: Final = 30_000
CHECK_MS: Final = 1_000
MOST_ASK_MS: Final = 4_000
"""The longest time-out for asking a new leader for its epochs; other due records wait meanwhile."""
APPEARS_S: Final = 5.0
"""How long an assigned topic may be missing from the metadata."""
LOOK_S: Final = 0.05
SHORTENED_S: Final = 10.0
"""How long to ask again when a log seems too short: the broker may no longer be its leader."""
FORMER: Final = 8
"""How many older indexes, from before the log lost records, are looked for; the newest ones."""
TURN: Final = 100
"""Records judged before the event loop gets a turn: each may have its own schedule to parse."""

log = logging.getLogger(__name__)


class TopicNotThere(KafkaError):
    """An assigned topic has no metadata: a new service tries again."""


class LogShortened(KafkaError):
    """The log ends before what was read of it: a new service begins where it was truncated."""


class DelayService(RebalanceListener):
    """`async with DelayService(...) as service: while True: await service.step()`.

    If `step` raises, it is unknown what was delivered: start a new service, which finds out.
    """

    def __init__(
        self,
        client: Client,
        index: DueTimeIndex,
        routes: Mapping[str, Route],
        *,
        instance: str,
        clock: Clock | None = None,
        counts: DelayCounts | None = None,
    ) -> None:
        """`instance` is a stable name: with it, a restart ends its own open transactions."""
        self._client, self._index, self.routes = client, index, dict(routes)
        self._clock = clock or SystemClock()
        self.counts = counts or DelayCounts()
        self.partitions: dict[TopicPartition, DelayPartition] = {}
        self.topics = Topics(client, self._clock)
        self._check_at_ms = self._trim_at_ms = self._leaders_at_ms = 0
        self._ask_ms = CHECK_MS
        self._instance = instance
        self._movers: dict[str, RouteMover] = {}
        self._consumer = GroupConsumer(
            client,
            GROUP,
            GroupSettings(
                offset_reset=OffsetReset.EARLIEST,
                isolation=IsolationLevel.READ_COMMITTED,
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=SESSION_MS // 3,
                max_poll_records=5000,
                metadata_max_age_ms=CHECK_MS,  # new partitions have due records too: find them soon
            ),
            listener=self,
            clock=self._clock,
        )

    async def __aenter__(self) -> "DelayService":
        await create_state_topic(self._client)
        await self._consumer.__aenter__()
        self._subscribe()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._consumer.close()
        for each in self._movers.values():
            await each.close()

    def route(self, routes: Mapping[str, Route]) -> None:
        """Serve these routes from now on. Records that already wait keep their due times."""
        if routes == self.routes:
            return
        self.routes = dict(routes)
        for each in self.partitions.values():
            each.route = routes.get(each.partition.topic, each.route)
        self._check_at_ms = 0
        self._subscribe()

    @property
    def waiting_for(self) -> set[str]:
        """Topics that this instance writes to but cannot write now."""
        routes = {each.route for each in self.partitions.values()}
        failing = {each.to for each in routes if self._movers[each.topic].failures}
        return failing | (self.topics.refused.keys() & _names(routes))

    def _subscribe(self) -> None:
        if self.routes:
            self._consumer.subscribe(self.routes)

    async def step(self) -> int:
        """Read new records, or wait for them until something is due; deliver. Returns how many."""
        if not self.routes:
            return 0
        records = await self._consumer.poll(self._wait_ms())
        await self._check()
        await self._check_leaders()
        await self._read(records)
        count = await self._deliver_due()
        await self._trim()
        return count

    # Rebalance callbacks, called inside a poll.

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        routes = self.routes  # `self.routes` may change at each await
        mine = [each for each in partitions if each.topic in routes]
        ids = await self._ids({each.topic for each in mine})
        for topic in ids:
            await self._mover(topic).init()
        keys = {each: IndexKey(ids[each.topic], each.partition) for each in mine}
        progress = await load_progress(self._client, keys.values())
        found = {
            each: DelayPartition(each, key, routes[each.topic], progress[key])
            for each, key in keys.items()
        }
        logs, lost = await self._looked_at(found)
        await self._rewind(found, lost)
        # Only after that: offsets from a former leader may never become readable.
        starts = await list_offsets(self._client, dict.fromkeys(keys, EARLIEST))
        ends = await list_offsets(
            self._client, dict.fromkeys(keys, LATEST), isolation=IsolationLevel.READ_COMMITTED
        )
        for partition, opened in found.items():
            opened.opened_to = ends[partition].offset - 1
            log_end, log_here = ends[partition].offset, logs.get(partition)
            await self._open(opened, starts[partition].offset, log_end, log_here)
            opened.route = self.routes.get(partition.topic, opened.route)
            self.partitions[partition] = opened
            self._consumer.seek(partition, opened.progress.read_to)
        self._check_at_ms = 0

    async def _looked_at(
        self, found: Mapping[TopicPartition, DelayPartition]
    ) -> tuple[dict[TopicPartition, LeaderLog], dict[TopicPartition, list[range]]]:
        """The leaders' logs, and offsets where these have lost or replaced records that were read.

        The answer is certain if the leader's epoch is at least that of the records read. Otherwise
        the broker may no longer be the leader, so it is asked again for a while. A log once seen as
        too short counts as such even if it grows meanwhile.
        """
        until_ms = self._clock.monotonic_ms() + int(SHORTENED_S * 1000)
        unsure: dict[TopicPartition, tuple[int, list[range]]] = {}
        while True:
            logs = await leader_logs(self._client, _since(found))
            rest = [each for each in found if each not in logs]
            ends = await list_offsets(self._client, dict.fromkeys(rest, LATEST))
            lost: dict[TopicPartition, list[range]] = {}
            before, unsure = unsure, {}
            for at, each in found.items():
                log_here, progress = logs.get(at), each.progress
                epoch = -1 if log_here is None else log_here.epoch
                gone = progress.lost(log_here or LeaderLog(-1, ends[at].offset, []))
                if at in before and before[at][0] == epoch:
                    gone = before[at][1]
                if gone:
                    lost[at] = gone
                if gone and (not progress.history.runs or epoch < progress.history.latest):
                    unsure[at] = epoch, gone
            if not unsure or self._clock.monotonic_ms() >= until_ms:
                return logs, lost
            self._client.forget()
            await asyncio.sleep(LOOK_S)

    async def _rewind(
        self,
        found: Mapping[TopicPartition, DelayPartition],
        lost: Mapping[TopicPartition, Sequence[range]],
    ) -> None:
        """Start again at the lost offsets: records there now are new, whatever was delivered."""
        by_topic: dict[str, list[DelayPartition]] = {}
        for partition, gone in lost.items():
            each = found[partition]
            for some in gone:
                log.error("%s lost its records from %d to %d", partition, some[0], some[-1])
            each.progress.rewind(gone)
            by_topic.setdefault(partition.topic, []).append(each)
        for topic, partitions in by_topic.items():
            await self._mover(topic).write_progress(partitions, self._consumer.group_metadata)
            for each in partitions:  # only now: another service may be the one to rewind
                await self._index.reset(each.stored, each.progress.read_to)

    def _mover(self, topic: str) -> RouteMover:
        if topic not in self._movers:
            self._movers[topic] = RouteMover(
                self._client,
                self._index,
                self.topics,
                transactional_id=f"{GROUP}-{self._instance}-{topic}",
                clock=self._clock,
                counts=self.counts,
            )
        return self._movers[topic]

    async def _ids(self, topics: set[str]) -> dict[str, Uuid]:
        try:
            async with asyncio.timeout(APPEARS_S):
                while True:
                    found = await self._client.existing_topics(topics) if topics else []
                    if len(found) == len(topics):
                        return {each.name: each.id for each in found}
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise TopicNotThere(f"topics that were assigned are not there: {topics}") from None

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await self.on_lost(partitions)

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        for each in partitions:
            self.partitions.pop(each, None)

    async def _open(
        self, opened: DelayPartition, log_start: Offset, log_end: Offset, leader: LeaderLog | None
    ) -> None:
        """Continue with the index if it matches the log; otherwise build it again from the log."""
        progress = opened.progress
        progress.read(log_start)
        await self._forget_former(opened)
        indexed_to = await self._index.indexed_to(opened.stored)
        if indexed_to is not None and _is_of(progress, indexed_to, log_end, leader):
            await self._resume(opened, indexed_to)
        else:
            await self._index.reset(opened.stored, progress.read_to)
        if leader is not None:
            opened.leader_epoch = leader.epoch
            # Includes records that are done but not read again yet: another leader may have lost
            # them.
            progress.history.adopt(leader, max(progress.read_to, progress.end))

    async def _forget_former(self, opened: DelayPartition) -> None:
        """Remove index entries from before the log lost records."""
        rewinds = opened.progress.history.rewinds
        for each in range(max(0, rewinds - FORMER), rewinds):
            former = stored_key(opened.key, each)
            if await self._index.indexed_to(former):
                await self._index.reset(former, Offset(0))

    async def _resume(self, opened: DelayPartition, indexed_to: Offset) -> None:
        key, progress = opened.stored, opened.progress
        done: list[int] = []
        """Offsets delivered before a crash or by another instance, but still in this index."""
        async for page in self._index.pages(key):
            for offset in page:
                if progress.is_done(offset):
                    done.append(offset)
                else:
                    progress.waits(offset)
        await self._index.remove(key, done)
        progress.read(indexed_to)
        opened.resume(await self._index.schedules(key))
        opened.next_due_ms = await self._index.next_due_ms(key)

    async def _check(self) -> None:
        """Once a second, check that the topics and the index are still the known ones."""
        now_ms = self._clock.monotonic_ms()
        if not self.partitions or (now_ms < self._check_at_ms and not self.topics.is_stale):
            return
        self._check_at_ms = now_ms + CHECK_MS
        await self.topics.refresh(_names(each.route for each in self.partitions.values()))
        for partition, owned in self.partitions.items():
            topic = self.topics.get(partition.topic)
            # In a recreated topic, offsets mean other records.
            if topic is not None and topic.id != owned.key.topic_id:
                raise TopicMadeAnew(f"topic {partition.topic} was created again")
            if await self._index.indexed_to(owned.stored) != owned.progress.read_to:
                raise StoreChanged(f"the store lost entries of {partition}")

    async def _check_leaders(self) -> None:
        """Check that a new leader has what was read. Until it answers, due records wait."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._leaders_at_ms:
            return
        new: dict[BrokerId, dict[TopicPartition, int]] = {}
        for partition, owned in list(self.partitions.items()):
            try:
                topic = await self._client.topic(partition.topic)  # the metadata that fetches use
            except KafkaError as error:  # it may be deleted
                log.debug("the leader of %s is not known: %s", partition, error)
                continue
            led = topic.partitions.get(partition.partition)
            if (
                led is not None
                and led.leader != NO_LEADER
                and led.leader_epoch > owned.leader_epoch
            ):
                new.setdefault(led.leader, {})[partition] = led.leader_epoch
        for epochs in new.values():  # one request per leader: one may be unreachable
            await self._ask_leader(epochs)

    async def _ask_leader(self, epochs: Mapping[TopicPartition, int]) -> None:
        changed = {each: self.partitions[each] for each in epochs}
        try:
            logs = await leader_logs(self._client, _since(changed), timeout_ms=self._ask_ms)
        except KafkaError as error:
            about = ", ".join(map(str, changed))
            log.warning("records of %s wait for what their new leader has: %s", about, error)
            self._ask_ms = min(2 * self._ask_ms, MOST_ASK_MS)  # it may be slow, or have many epochs
            self._leaders_at_ms = self._clock.monotonic_ms() + 2 * self._ask_ms
            return
        for partition, owned in changed.items():
            log_here = logs.get(partition)
            if log_here is None:
                owned.leader_epoch = epochs[partition]
            elif log_here.epoch >= max(owned.leader_epoch, owned.progress.history.latest):
                if owned.progress.history.lost(log_here):
                    await self._shortened(owned)
                owned.leader_epoch = log_here.epoch

    # Reading.

    def _wait_ms(self) -> int:
        now_ms, wait_ms = self._clock.now_ms(), IDLE_MS
        monotonic_ms = self._clock.monotonic_ms()
        for each in self.partitions.values():
            if each.is_opened and each.next_due_ms is not None:
                # While schedules wait for unread records, the next due entry may be one of them.
                least_ms = 0 if each.is_read else UNREAD_MS
                held_ms = each.held_until_ms - monotonic_ms
                wait_ms = min(wait_ms, max(least_ms, each.next_due_ms - now_ms, held_ms))
        return wait_ms

    async def _read(self, records: Iterable[ConsumedRecord]) -> None:
        now_ms, positions = self._clock.now_ms(), self._consumer.positions()
        for partition, at in positions.items():
            await self._check_onward(partition, at)
        entries: dict[TopicPartition, dict[int, Entry]] = {}
        for number, each in enumerate(records, 1):
            if number % TURN == 0:
                await asyncio.sleep(0)  # lets heartbeats go out
            owned = self.partitions.get(each.partition)
            if owned is not None:
                offset = each.record.offset
                if offset < owned.progress.read_to:
                    await self._check_onward(each.partition, offset)
                owned.progress.history.seen(each.leader_epoch, offset, offset)
                new = entries.setdefault(each.partition, {})
                for entry in owned.read(each.record, now_ms):
                    new[entry.offset] = entry
        for partition, owned in self.partitions.items():
            position = positions.get(partition)  # None: the topic was deleted
            if position is not None and position > owned.progress.read_to:
                found = list(entries.get(partition, {}).values())
                since = owned.progress.read_to
                await self._index.put(owned.stored, found, since=since, to=position)
                owned.progress.read(position)
                owned.indexed(found)
                owned.caught_up()

    async def _check_onward(self, partition: TopicPartition, offset: int) -> None:
        """A position moves back only if it was out of range: then it is at the log's start."""
        owned = self.partitions.get(partition)
        if owned is not None and offset < owned.progress.read_to:
            await self._shortened(owned)

    async def _shortened(self, owned: DelayPartition) -> NoReturn:
        """Note what the log has lost right now: when the partition is opened again, the log may
        have grown back to its former length.
        """
        partition, read_to = owned.partition, owned.progress.read_to
        await self._index.reset(owned.stored, Offset(0))
        logs = await leader_logs(self._client, _since({partition: owned}), timeout_ms=CHECK_MS)
        log_here = logs.get(partition)
        if log_here is not None and log_here.epoch >= owned.progress.history.latest >= 0:
            lost = owned.progress.lost(log_here)
            await self._rewind({partition: owned}, {partition: lost} if lost else {})
        raise LogShortened(f"{owned.partition} has other records before {read_to} than were read")

    # Delivering.

    async def _deliver_due(self) -> int:
        """Move all routes concurrently. Partitions do not move until all are done."""
        member = self._consumer.group_metadata
        moving = [
            self._movers[topic].move(partitions, member)
            for topic, partitions in self._by_topic().items()
        ]
        if len(moving) == 1:
            return await moving[0]
        try:
            async with asyncio.TaskGroup() as tasks:
                moved = [tasks.create_task(each) for each in moving]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return sum(each.result() for each in moved)

    def _by_topic(self) -> dict[str, list[DelayPartition]]:
        now_ms = self._clock.now_ms()
        found: dict[str, list[DelayPartition]] = {}
        for partition, owned in self.partitions.items():
            if owned.next_due_ms is not None and owned.next_due_ms <= now_ms:
                found.setdefault(partition.topic, []).append(owned)
        return found

    async def _trim(self) -> None:
        """Delete records before the floor: they are done."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._trim_at_ms:
            return
        self._trim_at_ms, self._check_at_ms = now_ms + TRIM_MS, 0
        await self._check()
        floors = {each.partition: each.progress.staged_floor() for each in self.partitions.values()}
        try:
            await delete_records(self._client, {each: at for each, at in floors.items() if at > 0})
        except KafkaError as error:
            log.warning("records that are done stay for now: %s", error)


def _since(found: Mapping[TopicPartition, DelayPartition]) -> dict[TopicPartition, int]:
    """The offsets from which on the epochs of logs matter."""
    return {
        at: each.progress.read_to if (first := each.progress.history.first) is None else first
        for at, each in found.items()
    }


def _is_of(
    progress: Progress, indexed_to: Offset, log_end: Offset, leader: LeaderLog | None
) -> bool:
    """Whether an index matches the log.

    An index that has more than the log belongs to a log that lost its end. An index that goes
    beyond the known epochs may too, if another epoch wrote that part.
    """
    if not progress.read_to <= indexed_to <= log_end:
        return False
    history = progress.history
    if leader is None or not history.runs or indexed_to <= history.end:
        return True
    return leader.epoch_at(indexed_to - 1) == history.latest


def _names(routes: Iterable[Route]) -> set[str]:
    return {name for each in routes for name in (each.topic, each.to, each.dead_letters)}
