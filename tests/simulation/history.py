"""The history of a run, and checks of the promises in docs/reliability.md."""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from zlib import crc32

from penstock.broker.startup.log_epochs import SKIPPED_EPOCHS
from penstock.errors import StorageError
from penstock.metadata import paths
from penstock.metadata.errors import NoNode
from penstock.metadata.records import TopicAssignment, decode
from penstock.metadata.store import Change, DataChanged, Node, Set
from penstock.record.batch import batches, crc_matches
from penstock.record.record import records
from penstock.replication.partition import Partition
from penstock.types import TopicPartition, Uuid
from simulation.network import NetworkedLoop
from simulation.zookeeper import ZooKeeper

TRACED = 120
DECOMPRESSED = 1 << 20


class Violation(AssertionError):
    """A promise was broken."""


@dataclass(frozen=True)
class Shard:
    """A partition of one topic. A topic created again has another id, and so other shards."""

    topic_id: Uuid
    where: TopicPartition

    def __str__(self) -> str:
        return str(self.where)


@dataclass
class Kept:
    """The records of one partition that must not be lost, by offset."""

    acked: dict[int, bytes] = field(default_factory=dict)
    """Acknowledged with acks=all by at least two brokers."""
    read: dict[int, bytes] = field(default_factory=dict)
    latest: tuple[int, int] = (-1, -1)
    """The highest leader epoch that returned the log's end, and that end."""


class History:
    """Belongs to the world. Raises `Violation` as soon as a promise is broken."""

    def __init__(self, loop: NetworkedLoop) -> None:
        self._loop = loop
        self.events: deque[str] = deque(maxlen=TRACED)
        self.kept: dict[Shard, Kept] = {}
        self.digest = 0
        """A digest of all events, equal for two runs of one seed."""
        self.fleeting: set[Uuid] = set()
        """Topics whose settings delete records soon, for which nothing is promised."""
        self.sent: dict[bytes, Uuid] = {}
        """The topic of each record, which must not appear in another topic's log."""
        self.trimmed: dict[Shard, int] = {}
        """The offsets up to which records were requested to be deleted."""
        self.violation: Violation | None = None
        self.counts: dict[str, int] = {}

    def now_ms(self) -> int:
        """The time on the brokers' clocks."""
        return 1_700_000_000_000 + int(self._loop.time() * 1000)

    def note(self, what: str) -> None:
        line = f"{self._loop.time():10.4f} {what}"
        self.events.append(line)
        self.digest = crc32(f"{self._loop.steps} {line}".encode(), self.digest)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def broken(self, what: str) -> None:
        """Only the first violation counts; later ones follow from it."""
        self.note(f"VIOLATION {what}")
        if self.violation is None:
            trace = "\n".join(self.events)
            self.violation = Violation(f"{what}\n\nThe last events:\n{trace}")

    def check(self) -> None:
        if self.violation is not None:
            raise self.violation

    def acked(self, shard: Shard, offset: int, value: bytes) -> None:
        self.count("acked")
        if shard.topic_id in self.fleeting:
            return
        kept = self.kept.setdefault(shard, Kept())
        before = kept.acked.setdefault(offset, value)
        if before != value:
            self.broken(f"{shard} acknowledged {value!r} at {offset}, and {before!r} before")
        self.is_read(shard, offset, value, "acknowledged")

    def is_read(self, shard: Shard, offset: int, value: bytes, by: str) -> None:
        before = self.kept.setdefault(shard, Kept()).read.setdefault(offset, value)
        if before != value:
            self.broken(f"{shard} at {offset} is {value!r} ({by}), and was {before!r}")

    def told_latest(self, shard: Shard, epoch: int, end: int) -> None:
        """KIP-207: the returned end never decreases, within an epoch and from each to the next."""
        kept = self.kept.setdefault(shard, Kept())
        known, before = kept.latest
        if epoch >= known:
            if end < before:
                self.broken(f"{shard} ended at {before} in epoch {known}, at {end} in {epoch}")
            kept.latest = epoch, end

    def check_log(self, shard: Shard, partition: Partition, who: str) -> None:
        """Every acknowledged or read record is in the log of a replica that must have it."""
        try:
            found = dict(values(partition))
        except StorageError:
            return  # its directory is failing; it will not lead for long
        for offset, value in found.items():
            if self.sent.get(value, shard.topic_id) != shard.topic_id:
                self.broken(f"{who} has {value!r} of a deleted topic in {shard} at {offset}")
                return
        kept = self.kept.get(shard)
        if kept is None:
            return
        start, trimmed = partition.log.log_start_offset, self.trimmed.get(shard, 0)
        if start > trimmed:
            self.broken(
                f"{who} begins {shard} at {start}, and deletion was asked up to {trimmed}:"
                f" its settings are {partition.log.config.retention_ms} ms of retention"
            )
            return
        for what, wanted in (("acknowledged", kept.acked), ("read", kept.read)):
            for offset, value in wanted.items():
                if found.get(offset) != value and offset >= partition.log.log_start_offset:
                    self.broken(
                        f"{who} lost {value!r} of {shard} at {offset}, which was {what}:"
                        f" it has {found.get(offset)!r}"
                    )
                    return


def values(partition: Partition, *, committed: bool = False) -> Iterator[tuple[int, bytes]]:
    """Offsets and values of a replica, checked as a consumer checks them."""
    log = partition.log
    end = log.high_watermark if committed else log.end_offset
    offset = log.log_start_offset
    while (part := log.read(offset, 1 << 20, up_to=end)) is not None:
        data = part.read()
        for position, header in batches(data):
            assert crc_matches(data, header, position)
            for record in records(data[position:], header, DECOMPRESSED):
                yield record.offset, record.value or b""
            offset = header.next_offset


class Registrar:
    """Watches the tree: which session writes what, in which epoch."""

    def __init__(self, history: History, zookeeper: ZooKeeper) -> None:
        self._history, self._zookeeper = history, zookeeper
        self._winners: dict[int, int] = {}
        self._epoch = 0
        self._epochs: dict[str, tuple[int, int, int]] = {}
        """For each partition: the creation of its node, leader epoch and controller epoch."""
        self._in_sync: dict[str, set[int]] = {}
        self._restored: set[str] = set()
        """States older than the logs. Brokers may raise the epoch of each, before they register."""
        self.vouched: list[tuple[TopicPartition, int]] = []
        """Replicas elected or added to an ISR since the last check; they must have every record."""
        zookeeper.tree.listeners.append(self._changed)

    def owns(self, node: Node) -> bool:
        """Whether the controller of this epoch wrote the state."""
        return bool(json.loads(node.data or b"{}").get("controller_epoch") == self._epoch)

    def by_hand(self, node: Node) -> None:
        """Write the same state again from outside, which needs no controller."""
        self._zookeeper.writer = self._winners[self._epoch]
        self._zookeeper.tree.apply(0, [[Set(node.path, node.data)]])

    def restore(self, path: str, data: bytes | None) -> None:
        """Write an older state, as an operator does who restores a backup of the store."""
        listeners = self._zookeeper.tree.listeners
        listeners.remove(self._changed)
        self._zookeeper.tree.apply(0, [[Set(path, data)]])
        listeners.append(self._changed)
        self._epochs.pop(path, None)
        self._restored.add(path)

    def _changed(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, DataChanged):
                if change.path == paths.CONTROLLER_EPOCH:
                    self._controller_epoch(change.path)
                elif change.path.endswith("/state"):
                    self._state(change.path)
                elif change.path.startswith(f"{paths.TOPICS}/") and change.path.count("/") == 3:
                    self._topic(change.path.rpartition("/")[2])

    def _topic(self, name: str) -> None:
        """Whether retention may delete the topic's records."""
        tree = self._zookeeper.tree
        try:
            topic, config = tree.get(paths.topic(name)), tree.get(paths.topic_config(name))
        except NoNode:
            return
        if topic.data and "retention.ms" in json.loads(config.data or b"{}").get("config", {}):
            self._history.fleeting.add(decode(TopicAssignment, topic).id())

    def _controller_epoch(self, path: str) -> None:
        epoch = int(self._zookeeper.tree.get(path).data or b"0")
        if epoch == 0:
            return
        self._history.note(f"controller epoch {epoch}")
        self._history.count("controllers")
        if epoch != self._epoch + 1 or epoch in self._winners:
            self._history.broken(f"controller epoch {epoch} after {self._epoch}")
        self._epoch, self._winners[epoch] = epoch, self._zookeeper.writer

    def _state(self, path: str) -> None:
        history = self._history
        try:
            node = self._zookeeper.tree.get(path)
        except NoNode:
            self._epochs.pop(path, None)
            self._in_sync.pop(path, None)
            return
        state = json.loads(node.data or b"{}")
        leader, isr = state["leader"], state["isr"]
        leader_epoch, controller_epoch = state["leader_epoch"], state["controller_epoch"]
        _, _, _, topic, _, index, _ = path.split("/")
        where = TopicPartition(topic, int(index))
        history.note(
            f"state {where}: leader {leader} epoch {leader_epoch} isr {isr} version {node.version}"
        )
        if path in self._restored and leader_epoch > SKIPPED_EPOCHS:
            self._restored.discard(path)
            return
        if controller_epoch != self._epoch:
            history.broken(f"{where} was written by controller {controller_epoch} in {self._epoch}")
        if self._zookeeper.writer != self._winners.get(controller_epoch):
            history.broken(f"{where} was not written by the controller of {controller_epoch}")
        if leader != -1 and leader not in isr:
            history.broken(f"{where} is led by {leader}, which is not in sync: {isr}")
        known = self._epochs.get(path)
        if known is not None and known[0] == node.created_zxid:
            if leader_epoch < known[1]:
                history.broken(
                    f"the leader epoch of {where} went from {known[1]} to {leader_epoch}"
                )
            if leader_epoch != known[1]:
                history.count("elections")
            else:
                history.count("isr changes")
        vouched = set(isr) - self._in_sync.get(path, set())
        if known is None or known[1] != leader_epoch:
            vouched.add(leader)
        self.vouched += [(where, each) for each in sorted(vouched)]
        self._in_sync[path] = set(isr)
        self._epochs[path] = node.created_zxid, leader_epoch, controller_epoch
