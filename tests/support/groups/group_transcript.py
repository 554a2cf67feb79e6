"""Transcripts of a group: commands and the events that they cause, to read and to replay.

    join a            a member joins; options like `static=i1 session=9000 protocols=x,y`;
                      `known=` joins without an id and requires one, `known=x` joins as x
    sync a a=s1 b=s2  the leader submits assignments
    pass 3000         time passes, in milliseconds
    restart           another coordinator loads the log

The events that a command must cause follow it, one per line, indented by two blanks. The
transcript's names are the member ids; generations and states are the coordinator's.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from penstock.clock import Clock
from penstock.config.consumer_group import ConsumerGroupConfig
from penstock.config.group import GroupConfig
from penstock.config.streams import StreamsConfig
from penstock.coordinator.errors import CoordinatorRecordTooLarge
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.leave import LeavingMember
from penstock.coordinator.group.classic.member import Joined, ProtocolMetadata, Synced
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.consumer.assignor.assignor import OFFERED, Assignors
from penstock.coordinator.group.consumer.group import Topics
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.group.records import GroupFormat, GroupShardRecord
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.streams.assignors import OFFERED as OFFERED_FOR_TASKS
from penstock.coordinator.group.streams.assignors import TaskAssignors
from penstock.coordinator.result import PendingReply
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.coordinator.storage import ProducerIdAndEpoch, RawRecord
from penstock.errors import KafkaError
from penstock.record.build import build_batch, numbered
from penstock.record.control import build_marker
from penstock.testing.loop import ManualLoop
from penstock.types import Buffer, TopicPartition
from support.replies import PendingReplies, reported

GROUP = "g"


class MemoryLog:
    """A partition's log in memory. `refusal` fails every append; without `commits`, appends stay
    uncommitted until `commit`.
    """

    def __init__(self) -> None:
        self.batches: list[bytearray] = []
        self.ends: list[int] = []
        self.refusal: KafkaError | None = None
        self.largest_bytes = 1 << 20
        self.commits = True
        self._committed = 0
        self._waiting: list[tuple[int, Callable[[], object]]] = []
        self.start_offset = 0

    @property
    def end_offset(self) -> int:
        return self.ends[-1] if self.ends else 0

    def append(
        self, records: list[RawRecord], now_ms: int, producer: ProducerIdAndEpoch | None = None
    ) -> int:
        if self.refusal is not None:
            raise self.refusal
        start = self.end_offset
        batch = build_batch(
            numbered(records, now_ms, start),
            base_offset=start,
            producer_id=-1 if producer is None else producer.id,
            producer_epoch=-1 if producer is None else producer.epoch,
            transactional=producer is not None,
        )
        if len(batch) > self.largest_bytes:
            raise CoordinatorRecordTooLarge(f"{len(batch)} bytes")
        self.batches.append(batch)
        self.ends.append(start + len(records))
        if self.commits:
            self._committed = self.end_offset
        return self.end_offset

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Append a marker, as the broker does for a transaction coordinator."""
        marker = build_marker(
            producer_id=producer_id,
            producer_epoch=0,
            committed=committed,
            coordinator_epoch=0,
            timestamp=0,
        )
        marker[:8] = self.end_offset.to_bytes(8)
        self.batches.append(marker)
        self.ends.append(self.end_offset + 1)
        self._committed = self.end_offset

    def commit(self) -> None:
        self._committed = self.end_offset
        waiting, self._waiting = self._waiting, []
        for offset, then in waiting:
            self.when_committed(offset, then)

    def lose_uncommitted(self) -> None:
        """Truncate the log, as when another replica takes over."""
        while self.ends and self.ends[-1] > self._committed:
            self.ends.pop()
            self.batches.pop()
        self._waiting.clear()

    def is_committed(self, offset: int) -> bool:
        return self._committed >= offset

    def when_committed(self, offset: int, then: Callable[[], object]) -> None:
        if self.is_committed(offset):
            then()
        else:
            self._waiting.append((offset, then))

    def delete_before(self, offset: int) -> None:
        self.start_offset = offset

    def read(self, offset: int) -> Buffer:
        """One batch at a time, so that loading has many slices."""
        at = next((i for i, end in enumerate(self.ends) if end > offset), None)
        return b"" if at is None else self.batches[at]


class LoopClock:
    """The clock of a `ManualLoop`; wall time is ahead of it."""

    def __init__(self, loop: ManualLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return 1_000_000 + round(self._loop.now_s * 1000)

    def monotonic_ms(self) -> int:
        return round(self._loop.now_s * 1000)


def coordinator(
    log: MemoryLog,
    loop: ManualLoop,
    clock: Clock,
    config: GroupConfig,
    topics: Callable[[], Topics] = dict,
    assignors: Assignors = OFFERED,
    settings: Callable[[str], ConsumerGroupConfig] | None = None,
    streams: StreamsConfig | None = None,
    task_assignors: TaskAssignors = OFFERED_FOR_TASKS,
) -> GroupCoordinator:
    """A coordinator of this partition alone, whose log it has not loaded yet."""
    runtime: CoordinatorRuntime[GroupShard, GroupShardRecord] = CoordinatorRuntime(
        "offsets",
        lambda pending: GroupShard(
            config,
            assignors,
            topics,
            settings,
            pending,
            streams_config=streams,
            task_assignors=task_assignors,
        ),
        GroupFormat(),
        loop=loop,
        clock=clock,
        on_reply=lambda _: None,
    )
    groups = GroupCoordinator(runtime, lambda: 1)
    runtime.lead(0, log)
    return groups


class Story:
    """One group and its log, driven by lines."""

    KNOWS_EPOCHS = False
    """Whether its members commit with a request version that has member epochs."""

    def __init__(self, config: GroupConfig) -> None:
        self._config = config
        self.loop = ManualLoop()
        self.log = MemoryLog()
        self.clock = LoopClock(self.loop)
        self._pending_replies: PendingReplies = {}
        self.generations: dict[str, int] = {}
        self._state = ""
        self._rebalances = 0
        self.topics: Topics = {}
        self._start()

    def _start(self) -> None:
        self.groups = coordinator(
            self.log, self.loop, self.clock, self._config, lambda: self.topics
        )
        self.loop.advance()

    @property
    def shard(self) -> GroupShard:
        return self.groups.shards()[0]

    def play(self, line: str) -> list[str]:
        """Plays one command; returns the events that it causes."""
        command, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        getattr(self, f"_{command}")(*names, **options)
        return [*reported(self.groups.runtime, self._pending_replies), *self._changes()]

    def _changes(self) -> Iterator[str]:
        state = self._state_text()
        if state != self._state:
            self._state = state
            yield f"group: {state}"
        rebalances = self.shard.rebalances.of(GROUP)
        for each in rebalances[self._rebalances :]:
            yield f"log: generation {each.generation} in {each.duration_ms} ms: {each.reason}"
        self._rebalances = len(rebalances)

    def _state_text(self) -> str:
        known = self.shard.classic_groups.get(GROUP)
        return "gone" if known is None else f"{known.state.value} {known.generation}"

    def _wait(self, name: str, pending: PendingReply[Any], text_of: Callable[..., str]) -> None:
        self._pending_replies[name] = (pending, text_of)

    def _join(
        self,
        name: str,
        *,
        static: str | None = None,
        session: str = "10000",
        rebalance: str = "60000",
        protocols: str = "range",
        kind: str = "consumer",
        known: str | None = None,
        reason: str = "",
        skip: str = "",
        **subscription: str,
    ) -> None:
        is_known = self._is_known(name)
        pending = self.groups.join(
            GROUP,
            GroupJoin(
                member_id=(name if is_known else "") if known is None else known,
                new_member_id=name,
                instance_id=static,
                session_timeout_ms=int(session),
                rebalance_timeout_ms=int(rebalance),
                protocol_type=kind,
                protocols=tuple(
                    ProtocolMetadata(each, self._metadata(f"{name}/{each}", **subscription))
                    for each in protocols.split(",")
                ),
                reason=reason,
                needs_known_id=known == "",
                may_skip_assignment=bool(skip),
            ),
        )
        self._wait(f"join {name}", pending, lambda joined: self._joined(name, joined))

    def _is_known(self, name: str) -> bool:
        group = self.shard.classic_groups.get(GROUP)
        return group is not None and (name in group.members or name in group.pending_join_members)

    def _metadata(self, text: str) -> bytes:
        return text.encode()

    def _share_bytes(self, text: str) -> bytes:
        return text.encode()

    def _share_text(self, assignment: bytes) -> str:
        return assignment.decode()

    def _joined(self, name: str, joined: Joined) -> str:
        self.generations[name] = joined.generation
        text = f"{joined.protocol} {joined.generation} leader={joined.leader}"
        if joined.members:
            text += f" members={','.join(each.id for each in joined.members)}"
        return f"{text} skip" if joined.skip_assignment else text

    def _sync(self, name: str, **assignments: str) -> None:
        generation = int(assignments.pop("generation", self.generations.get(name, 0)))
        static = assignments.pop("static", None)
        pending = self.groups.sync(
            GROUP,
            GroupSync(
                member_id=name,
                instance_id=static,
                generation=generation,
                assignments={
                    who: self._share_bytes(assignment) for who, assignment in assignments.items()
                },
            ),
        )

        def text_of(synced: Synced) -> str:
            return self._share_text(synced.assignment) or "nothing"

        self._wait(f"sync {name}", pending, text_of)

    def _beat(self, *names: str, generation: str = "", static: str | None = None) -> None:
        for name in names:
            number = int(generation or self.generations.get(name, 0))
            pending = self.groups.heartbeat(GROUP, name, number, static)
            self._wait(f"beat {name}", pending, lambda _: "ok")

    def _leave(self, *names: str, static: str | None = None, reason: str = "") -> None:
        leaving = [LeavingMember(name, None, reason) for name in names]
        leaving += [LeavingMember("", static)] if static is not None else []
        pending = self.groups.leave(GROUP, tuple(leaving))

        def text_of(refused: tuple[KafkaError | None, ...]) -> str:
            return ",".join("ok" if each is None else each.code.name for each in refused)

        self._wait(f"leave {' '.join(names) or static}", pending, text_of)

    def _commit(
        self,
        name: str,
        offset: str,
        *,
        generation: str = "",
        topic: str = "t",
        producer: str = "",
    ) -> None:
        member = "" if name == "nobody" else name
        number = int(generation or self.generations.get(name, -1))
        committed = CommittedOffset(int(offset), commit_ms=self.clock.now_ms())
        pending = self.groups.commit(
            GROUP,
            Committer(generation=number, member_id=member, knows_epochs=self.KNOWS_EPOCHS),
            ((TopicPartition(topic, 0), committed),),
            ProducerIdAndEpoch(int(producer), 0) if producer else None,
        )
        self._wait(f"commit {name}", pending, lambda _: "ok")

    def _end(self, producer: str, outcome: str) -> None:
        """A producer's transaction ends: its marker is in the log."""
        self.log.end_transaction(int(producer), committed=outcome == "committed")
        self.groups.runtime.end_transaction(0, int(producer), committed=outcome == "committed")

    def _fetch(self) -> None:
        pending = self.groups.fetch(GROUP, None)

        def text_of(offsets: dict[TopicPartition, CommittedOffset]) -> str:
            return " ".join(f"{k}={v.offset}" for k, v in sorted(offsets.items())) or "nothing"

        self._wait("fetch", pending, text_of)

    def _delete(self) -> None:
        self._wait("delete", self.groups.delete_group(GROUP), lambda _: "ok")

    def _pass(self, milliseconds: str) -> None:
        until_s = round(self.loop.now_s + int(milliseconds) / 1000, 3)
        self.loop.advance(until_s - self.loop.now_s + 1e-6)  # compensates for float rounding
        self.loop.now_s = until_s

    def _restart(self) -> None:
        self.groups.runtime.resign(0)
        self._rebalances = 0
        self._start()


def replayed(path: Path, config: GroupConfig, story_type: type[Story] = Story) -> str:
    """The transcript with the events that really happen: equal to the file if the file is right."""
    story = story_type(config)
    lines = []
    for line in path.read_text().splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [f"  {event}" for event in story.play(line)]
    return "\n".join(lines) + "\n"
