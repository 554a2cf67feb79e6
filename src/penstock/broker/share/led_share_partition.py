"""A share-partition on its leader: loads and writes its state, and expires its locks."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from penstock.broker.share.batch_keys import BatchKeys
from penstock.broker.share.circuit_breaker import CircuitBreaker, DeliveryRules
from penstock.broker.share.in_flight import Transition
from penstock.broker.share.persister import Persister
from penstock.broker.share.share_partition import (
    Acknowledgement,
    AcquiredRecords,
    Acquisition,
    DueLetter,
    FetchedBatch,
    ShareLimits,
    SharePartition,
)
from penstock.broker.share.state_calls import ReadState, WriteState
from penstock.broker.waiters import Waiters
from penstock.clock import Clock
from penstock.coordinator.result import EmptyReply
from penstock.coordinator.share.shard import StateUpdate
from penstock.coordinator.share.state import NO_START, ShareGroupOffset, SharePartitionKey
from penstock.errors import KafkaError
from penstock.log.store import PartitionOffline
from penstock.loop import Handle, Loop
from penstock.replication.errors import NotLeader
from penstock.replication.partition import Partition
from penstock.wire.enums import AcknowledgeType

logger = logging.getLogger(__name__)

FindStart: TypeAlias = Callable[[Callable[[int | Exception], object]], object]
"""Finds the start of a new group, and calls back: at once, or after a search of the log."""


class LedSharePartition:
    """Belongs to the event loop. Requests that wait for it are parked under this object.

    Calls `on_lost` when it must be loaded again: another broker leads, its offsets were altered, or
    no member is left.
    """

    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        limits: Callable[[], ShareLimits],
        delivery: Callable[[], DeliveryRules],
        post: Callable[["LedSharePartition", list[DueLetter]], object],
        persister: Persister,
        waiters: Waiters,
        loop: Loop,
        clock: Clock,
        find_start: FindStart,
        on_lost: Callable[["LedSharePartition"], object],
    ) -> None:
        self.key, self.partition, self.tenure = key, partition, partition.tenure
        self._limits, self._delivery, self._post = limits, delivery, post
        self._persister, self._waiters = persister, waiters
        self._breaker = CircuitBreaker()
        self._loop, self._clock = loop, clock
        self._find_start, self._on_lost = find_start, on_lost
        self.keys = BatchKeys(lambda: waiters.changed(self))
        self.state: SharePartition | None = None
        """None while it is being loaded."""
        self.refused: KafkaError | None = None
        """Why it could not be loaded."""
        self.state_epoch = 0
        self._letters = 0
        """The number of dead letters being written."""
        self._timer: Handle | None = None
        self._due_ms = 0
        """When the timer fires."""
        self.is_needed = True
        """False once no member is left. It is dropped only after everything is written: otherwise a
        new instance would load a state without that.
        """

    @property
    def is_led(self) -> bool:
        return self.refused is None and self.partition.is_in_tenure(self.tenure)

    @property
    def only_writes_letters(self) -> bool:
        """No member is left, and everything is written: its offsets may have been altered since."""
        return not self.is_needed and not (self.state is not None and self.state.is_writing)

    @property
    def failed_in_a_row(self) -> int:
        """Failed deliveries since the last successful one."""
        return self._breaker.failed_in_a_row

    # --- loading

    def load(self) -> None:
        self._persister.call(ReadState(self.key, self.partition.leader_epoch), self._loaded)

    def _loaded(self, reply: ShareGroupOffset | KafkaError) -> None:
        if not self.is_needed:
            return  # dropped: another instance may have written a start by now
        if isinstance(reply, KafkaError):
            self.lose(reply)
            return
        self.state_epoch = reply.state_epoch
        if reply.start_offset == NO_START:
            self._find_start(self._begin)
            return
        self.state = SharePartition(reply.start_offset, reply.batches)
        self.state.back_off(self._limits(), self._clock.monotonic_ms())
        self._arm()
        self._post_letters()
        self._waiters.changed(self)

    def _begin(self, start: int | Exception) -> None:
        """Write the start at once: the next leader would choose another one, and skip records that
        were delivered and not acknowledged.
        """
        if not self.is_needed or self.refused is not None:
            return  # dropped during the search
        if isinstance(start, KafkaError):  # a batch is corrupt
            self.lose(start)
            return
        if isinstance(start, Exception):
            self.lose(PartitionOffline(str(start)))
            return
        self.state = SharePartition(start, is_new=True)
        self._write()
        self._waiters.changed(self)

    def lose(self, why: KafkaError) -> None:
        """Stop; unwritten decisions are refused. The next request loads it again."""
        if self.refused is not None:
            return
        self.refused = why
        if self._timer is not None:
            self._timer.cancel()
        logger.debug("%s: %s", self.key, why)
        if self.state is not None:
            for transition in self.state.give_up(why):
                self._waiters.changed(transition)
        self._on_lost(self)
        self._waiters.changed(self)

    def retire(self) -> None:
        """Drop it once everything is written: no member is left."""
        self.is_needed = False
        self._go_if_idle()

    def _go_if_idle(self) -> None:
        is_busy = self.state is not None and (self.state.is_writing or self._letters > 0)
        if not self.is_needed and not is_busy:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._on_lost(self)

    # --- operations of members

    def fetch_offset(self) -> int | None:
        """The offset to read from next; None if nothing can be delivered now."""
        if self.state is None:
            return None
        now_ms = self._clock.monotonic_ms()
        self.state.log_starts_at(self.partition.log.log_start_offset)
        if self._breaker.tried is not None and not self.state.is_acquired(self._breaker.tried):
            self._breaker.given_back()
        rules = self._delivery()
        if rules.is_paused or self._breaker.most(rules, now_ms) == 0:
            return None
        return self.state.fetch_offset(self._limits(), now_ms)

    def acquire(self, wanted: Acquisition, found: Sequence[FetchedBatch]) -> list[AcquiredRecords]:
        assert self.state is not None, "it was read from"
        now_ms = self._clock.monotonic_ms()
        most = self._breaker.most(self._delivery(), now_ms)
        if most is not None:
            wanted = wanted._replace(max_records=most, is_strict=True)
        before = self.state.next_offset, self.state.first_unknown_key
        acquired = self.state.acquire(wanted, found, self._limits(), now_ms)
        if acquired:
            self._breaker.tries(acquired[0].first)
        self._arm()
        if not acquired and (self.state.next_offset, self.state.first_unknown_key) != before:
            # There were only aborted records, or records that wait for others with their keys. Read
            # on once the request is parked.
            self._loop.call_soon(lambda: self._waiters.changed(self))
        return acquired

    def acknowledge(self, member: str, given: Sequence[Acknowledgement]) -> Transition:
        if self.state is None:
            raise NotLeader(f"{self.key} is being loaded")
        now_ms, start = self._clock.monotonic_ms(), self.state.start_offset
        transition = self.state.acknowledge(member, given, self._limits(), now_ms)
        for first, last, kind in given:
            if last < start:
                continue  # finished before: it says nothing about deliveries now
            if kind is AcknowledgeType.ACCEPT:
                self._breaker.succeeded()
            elif kind in {AcknowledgeType.RELEASE, AcknowledgeType.REJECT}:
                self._failed(last - max(first, start) + 1, now_ms)
        self._write()
        return transition

    def _failed(self, records: int, now_ms: int) -> None:
        self._breaker.failed(records, self._delivery(), now_ms)

    def release(self, member: str) -> None:
        """Release the member's records: its session has ended."""
        if self.state is not None and self.state.release(member):
            self._write()
            self._waiters.changed(self)

    # --- timers and writes

    def _arm(self) -> None:
        if self.state is None:
            return
        now_ms = self._clock.monotonic_ms()
        due_ms = self.state.next_deadline_ms(now_ms)
        open_until_ms = self._breaker.open_until_ms
        if open_until_ms is not None and open_until_ms > now_ms:
            due_ms = open_until_ms if due_ms is None else min(due_ms, open_until_ms)
        if due_ms is None or (self._timer is not None and self._due_ms <= due_ms):
            return
        if self._timer is not None:  # locks are shorter than they were
            self._timer.cancel()
        self._due_ms = due_ms
        delay_ms = max(due_ms - now_ms, 0)
        self._timer = self._loop.call_later(delay_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if not self.is_led or self.state is None:
            return
        now_ms = self._clock.monotonic_ms()
        expired = self.state.expire(self._limits(), now_ms)
        if expired:
            self._failed(expired, now_ms)
            self._write()
        self._waiters.changed(self)  # also for records that have become visible
        self._arm()

    def _write(self) -> None:
        if self.state is None or self.refused is not None:
            return
        if not self.is_led:
            # The partition has the new leader's epoch by now, so this write would not be fenced.
            self.lose(NotLeader(f"{self.key} is led by another broker"))
            return
        write = self.state.begin_write()
        if write is None:
            return
        update = StateUpdate(
            self.state_epoch,
            self.partition.leader_epoch,
            write.start_offset,
            write.delivery_complete_count,
            write.batches,
        )
        self._persister.call(WriteState(self.key, update), self._written)

    def _written(self, reply: EmptyReply | KafkaError) -> None:
        if self.state is None or self.refused is not None:
            return
        refused = reply if isinstance(reply, KafkaError) else None
        for transition in self.state.end_write(refused):
            self._waiters.changed(transition)
        if refused is not None:
            # The stored state may differ by now: the next request loads it again.
            self.lose(refused)
            return
        self._waiters.changed(self)
        if self._limits().backoff_ms or self._breaker.open_until_ms is not None:
            self._arm()
        self._post_letters()
        self._write()
        self._go_if_idle()

    # --- dead letters

    def _post_letters(self) -> None:
        due = [] if self.state is None else self.state.take_letters(self._limits())
        if due:
            self._letters += len(due)
            self._post(self, due)

    def letter_written(self, offset: int) -> None:
        self._letters -= 1
        if self.state is not None and self.refused is None:
            self.state.letter_written(offset)
            self._waiters.changed(self)
            self._write()
            self._go_if_idle()
