"""Records between a share-partition's start and the last one that was delivered."""

from bisect import bisect_left
from typing import Final

from penstock.coordinator.share.state import RecordState, StateBatch
from penstock.errors import KafkaError

NO_OWNER: Final = ""


class Transition:
    """A decision about records in flight, from one request. It takes effect once it is written."""

    __slots__ = ("is_done", "refused")

    def __init__(self) -> None:
        self.is_done = False
        self.refused: KafkaError | None = None
        """Why it could not be written; the records are then unchanged."""

    def end(self, refused: KafkaError | None = None) -> None:
        self.is_done, self.refused = True, refused


class InFlightRun:
    """Neighbouring records with one state, one delivery count and one owner."""

    __slots__ = (
        "batch",
        "count",
        "deadline_ms",
        "dirty",
        "first",
        "is_rejected",
        "is_sent",
        "last",
        "next",
        "owner",
        "state",
        "transition",
        "visible_ms",
    )

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        count: int,
        batch: tuple[int, int] | None = None,
    ) -> None:
        self.first, self.last, self.state, self.count = first, last, state, count
        self.batch = batch or (first, last)
        """The first and last of the records that were delivered together the first time."""
        self.owner = NO_OWNER
        self.deadline_ms = 0
        """When the owner's lock ends."""
        self.visible_ms = 0
        """When an available record may be delivered again."""
        self.next: tuple[RecordState, int] | None = None
        """The decided state and count, which take effect once they are written."""
        self.transition: Transition | None = None
        """The decision that `next` is part of."""
        self.dirty = False
        """The state has changed and is not written yet."""
        self.is_rejected = False
        """Whether a member rejected it; otherwise its delivery count makes it a dead letter."""
        self.is_sent = False
        """Whether it was passed to the dead letter writer."""

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE and self.next is None

    @property
    def is_held(self) -> bool:
        """A member holds it, and no decision about it is pending."""
        return self.state is RecordState.ACQUIRED and self.next is None

    @property
    def is_to_be_archived(self) -> bool:
        """Whether it will become a dead letter, but that is not written yet."""
        if self.next is not None:
            return self.next[0] is RecordState.ARCHIVING
        return self.state is RecordState.ARCHIVING and self.dirty

    def become(self, state: RecordState, count: int) -> None:
        self.state, self.count, self.owner, self.dirty = state, count, NO_OWNER, True

    def acquired_by(self, member: str, until_ms: int) -> None:
        self.state, self.count = RecordState.ACQUIRED, self.count + 1
        self.owner, self.deadline_ms = member, until_ms

    def split(self, at: int) -> "InFlightRun":
        """Keep the records before `at`; returns a run with the rest."""
        rest = InFlightRun(at, self.last, self.state, self.count, self.batch)
        rest.owner, rest.deadline_ms, rest.visible_ms = (
            self.owner,
            self.deadline_ms,
            self.visible_ms,
        )
        rest.next, rest.transition, rest.dirty = self.next, self.transition, self.dirty
        rest.is_rejected, rest.is_sent = self.is_rejected, self.is_sent
        self.last = at - 1
        return rest

    def as_batch(self) -> StateBatch:
        state, count = self.next or (self.state, self.count)
        if state is RecordState.ACQUIRED:
            # It was released, and acquired again before that was written. Neither the lock nor the
            # current delivery is stored: after a crash the record is delivered once more.
            state, count = RecordState.AVAILABLE, count - 1
        return StateBatch(self.first, self.last, state, count)


class InFlightRuns:
    """Runs in order, without gaps. Changed only through its methods."""

    def __init__(self) -> None:
        self.runs: list[InFlightRun] = []

    def at(self, offset: int) -> int:
        """The index of the run that holds `offset`, or of the first one after it."""
        return bisect_left(self.runs, offset, key=lambda run: run.last)

    def between(self, first: int, last: int) -> list[InFlightRun]:
        """The runs that overlap the range, whole."""
        begin = self.at(first)
        end = begin
        while end < len(self.runs) and self.runs[end].first <= last:
            end += 1
        return self.runs[begin:end]

    def exactly(self, first: int, last: int) -> list[InFlightRun]:
        """The runs from `first` to `last`, after splitting the runs that cross these borders."""
        for border in (first, last + 1):
            index = self.at(border)
            if index < len(self.runs) and self.runs[index].first < border:
                self.runs.insert(index + 1, self.runs[index].split(border))
        return self.between(first, last)

    def append(self, run: InFlightRun) -> InFlightRun:
        assert not self.runs or self.runs[-1].last + 1 == run.first, "runs have no holes"
        self.runs.append(run)
        return run

    def drop_before(self, offset: int) -> None:
        if self.runs and self.runs[0].first < offset:
            self.exactly(self.runs[0].first, offset - 1)
            del self.runs[: self.at(offset)]
