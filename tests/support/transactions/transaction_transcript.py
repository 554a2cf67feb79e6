"""Transcripts of a transactional id: commands and the events that they cause.

    init a            a producer initialises the id; `as=a` states its identity so far,
                      `timeout=500` its transaction timeout
    add a t-0 t-1     partitions become part of its transaction; `v=2` by a newer client
    commit a          or `abort a`; `v=2` as a newer client ends it
    verify a t-0      is the partition part of the transaction?
    hold t-0          its leader cannot be reached; `release t-0` ends that
    pass 3000         time passes, in milliseconds
    restart           another coordinator loads the log
    lag, commit-log   decisions are not replicated for now; they are again

The events that a command must cause follow it, one per line, indented by two blanks. The
transcript names producers; ids, epochs and states are the coordinator's.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import count
from pathlib import Path

from msgspec.structs import replace

from penstock.config.transaction import TransactionConfig
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.coordinator.transaction.completion import TransactionCompletion, TransactionMarker
from penstock.coordinator.transaction.coordinator import TransactionCoordinator
from penstock.coordinator.transaction.ending import TransactionEnd
from penstock.coordinator.transaction.initiation import TransactionInit
from penstock.coordinator.transaction.records import TransactionFormat, TransactionRecord
from penstock.coordinator.transaction.shard import TransactionShard
from penstock.testing.loop import ManualLoop
from penstock.types import TopicPartition
from support.groups.group_transcript import LoopClock, MemoryLog
from support.replies import PendingReplies, reported

NAME = "x"
RETRY_S = 0.5


class Participants:
    """Partitions that accept markers unless they are held; `markers` has each in order."""

    def __init__(self, loop: ManualLoop) -> None:
        self._loop = loop
        self.held: set[TopicPartition] = set()
        self.markers: list[tuple[TopicPartition, TransactionMarker]] = []

    def write(
        self,
        marker: TransactionMarker,
        participants: Collection[TopicPartition],
        coordinator: int,
        done: Callable[[], object],
    ) -> None:
        ready = sorted(set(participants) - self.held)
        self.markers += [(each, marker) for each in ready]
        rest = set(participants) - set(ready)
        if rest:
            self._loop.call_later(RETRY_S, lambda: self.write(marker, rest, coordinator, done))
        else:
            done()


def coordinator(
    log: MemoryLog, loop: ManualLoop, participants: Participants, config: TransactionConfig
) -> TransactionCoordinator:
    """A coordinator of this partition alone, whose log it has not loaded yet."""
    runtime: CoordinatorRuntime[TransactionShard, TransactionRecord] = CoordinatorRuntime(
        "transactions",
        lambda _: TransactionShard(config),
        TransactionFormat(),
        loop=loop,
        clock=LoopClock(loop),
        on_reply=lambda _: None,
    )
    runtime.on_change = TransactionCompletion(runtime, participants, loop).on_change
    runtime.lead(0, log)
    return TransactionCoordinator(runtime, lambda: 1)


class Story:
    """One transactional id and its log, driven by lines."""

    def __init__(self, config: TransactionConfig) -> None:
        self._config = config
        self.loop = ManualLoop()
        self.log = MemoryLog()
        self.participants = Participants(self.loop)
        self._ids = count(1000)
        self.producers: dict[str, ProducerIdAndEpoch] = {}
        self._pending_replies: PendingReplies = {}
        self._state = ""
        self._start()

    def _start(self) -> None:
        self.transactions = coordinator(self.log, self.loop, self.participants, self._config)
        self.loop.advance()

    @property
    def shard(self) -> TransactionShard:
        return self.transactions.shards()[0]

    def play(self, line: str) -> list[str]:
        """Plays one command; returns the events that it causes."""
        command, *words = line.split()
        options = {f"{k}_": v for k, v in (word.split("=", 1) for word in words if "=" in word)}
        names = [word for word in words if "=" not in word]
        self.participants.markers.clear()
        getattr(self, f"_{command.replace('-', '_')}")(*names, **options)
        self.loop.advance()
        return [*reported(self.transactions.runtime, self._pending_replies), *self._changes()]

    def _changes(self) -> Iterator[str]:
        for topic_partition, marker in self.participants.markers:
            how = "commit" if marker.committed else "abort"
            yield f"{topic_partition}: {how} {marker.producer_id}/{marker.producer_epoch}"
        known = self.shard.transactions.get(NAME)
        if known is None:
            state = "gone"
        else:
            partitions = " ".join(map(str, sorted(known.partitions)))
            producer = f"{known.producer_id}/{known.producer_epoch}"
            state = f"{known.state.value} {producer} {partitions}".rstrip()
        if state != self._state:
            self._state = state
            yield f"{NAME}: {state}"

    def _init(self, name: str, *, as_: str | None = None, timeout_: str = "60000") -> None:
        known = None if as_ is None else self.producers[as_]
        request = TransactionInit(int(timeout_), known)
        pending = self.transactions.init(NAME, request, next(self._ids))
        self._pending_replies[f"init {name}"] = pending, lambda given: self._given(name, given)

    def _given(self, name: str, given: ProducerIdAndEpoch) -> str:
        self.producers[name] = given
        return f"{given.id}/{given.epoch}"

    def _add(self, name: str, *partitions: str, v_: str = "0") -> None:
        wanted = frozenset(map(_partition, partitions))
        pending = self.transactions.add(NAME, self.producers[name], wanted, int(v_))
        self._pending_replies[f"add {name}"] = pending, lambda _: "ok"

    def _verify(self, name: str, *partitions: str) -> None:
        pending = self.transactions.verify(
            NAME, self.producers[name], tuple(map(_partition, partitions))
        )
        self._pending_replies[f"verify {name}"] = (
            pending,
            lambda refused: " ".join("ok" if each is None else each.code.name for each in refused),
        )

    def _commit(self, name: str, *, v_: str = "0") -> None:
        self._end(name, int(v_), committed=True)

    def _abort(self, name: str, *, v_: str = "0") -> None:
        self._end(name, int(v_), committed=False)

    def _end(self, name: str, version: int, *, committed: bool) -> None:
        request = TransactionEnd(self.producers[name], committed, version)
        pending = self.transactions.end(NAME, request, next(self._ids))

        def text_of(given: ProducerIdAndEpoch) -> str:
            return self._given(name, given) if version >= 2 else "ok"

        self._pending_replies[f"{'commit' if committed else 'abort'} {name}"] = pending, text_of

    def _copy(self, name: str, to: str) -> None:
        """Another producer with this one's identity, as after a lost response."""
        self.producers[to] = self.producers[name]

    def _epoch(self, name: str, epoch: str) -> None:
        """Sets the epoch, so that almost all epochs have been used."""
        runtime, known = self.transactions.runtime, self.shard.transactions[NAME]
        self.producers[name] = ProducerIdAndEpoch(known.producer_id, int(epoch))
        aged = replace(known, producer_epoch=int(epoch))
        raw = TransactionFormat().encode(TransactionRecord(NAME, aged))
        self.log.append([raw], runtime.now().wall_ms)
        self._restart()

    def _hold(self, *partitions: str) -> None:
        self.participants.held |= set(map(_partition, partitions))

    def _release(self, *partitions: str) -> None:
        self.participants.held -= set(map(_partition, partitions))

    def _pass(self, milliseconds: str) -> None:
        until_s = round(self.loop.now_s + int(milliseconds) / 1000, 3)
        self.loop.advance(until_s - self.loop.now_s + 1e-6)  # compensates for float rounding
        self.loop.now_s = until_s

    def _lag(self) -> None:
        self.log.commits = False

    def _commit_log(self) -> None:
        self.log.commits = True
        self.log.commit()

    def _restart(self) -> None:
        self.transactions.runtime.resign(0)
        self._pending_replies.clear()
        self._start()


def _partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def replayed(path: Path, config: TransactionConfig) -> str:
    """The transcript with the events that really happen: equal to the file if the file is right."""
    story = Story(config)
    lines = []
    for line in path.read_text().splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [f"  {event}" for event in story.play(line)]
    return "\n".join(lines) + "\n"
