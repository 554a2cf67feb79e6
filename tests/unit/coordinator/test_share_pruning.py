"""`__share_group_state` is pruned without losing state that is still needed."""

from penstock.config.share import ShareConfig
from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.coordinator.share.coordinator import TOPIC, ShareCoordinator
from penstock.coordinator.share.pruning import StatePruning
from penstock.coordinator.share.records import ShareFormat, ShareRecord
from penstock.coordinator.share.shard import ShareShard, StateUpdate
from penstock.coordinator.share.state import SharePartitionKey, StateBatch
from penstock.testing.loop import ManualLoop
from penstock.types import Uuid
from support.groups.group_transcript import LoopClock, MemoryLog

HERE, THERE = Uuid(b"h" * 16), Uuid(b"t" * 16)
KEYS = [SharePartitionKey("g", topic, 0) for topic in (HERE, THERE)]
ACKNOWLEDGED = 2


class Story:
    """Two topics, whose states have three records each."""

    def __init__(self) -> None:
        self.log, self.loop = MemoryLog(), ManualLoop()
        self.topics = {HERE, THERE}
        self.coordinator = self.loaded()
        self.pruning = StatePruning(self.coordinator, lambda: self.topics)
        for key in KEYS:
            self.coordinator.initialize(key, 1, 0)
            for offset in (1, 3):
                batch = StateBatch(offset, offset, ACKNOWLEDGED, 1)
                self.coordinator.write(key, StateUpdate(1, 1, -1, 1, (batch,)))

    def loaded(self) -> ShareCoordinator:
        runtime: CoordinatorRuntime[ShareShard, ShareRecord] = CoordinatorRuntime(
            TOPIC,
            lambda _: ShareShard(ShareConfig()),
            ShareFormat(),
            loop=self.loop,
            clock=LoopClock(self.loop),
            on_reply=lambda _: None,
        )
        runtime.lead(0, self.log)
        self.loop.advance()
        return ShareCoordinator(runtime, lambda: 1)

    def offsets(self) -> dict[SharePartitionKey, tuple[StateBatch, ...]]:
        """The state loaded from the log."""
        found = self.loaded().runtime.shard(0).offsets
        return {key: each.batches for key, each in found.items()}


def test_snapshots_replace_earlier_records() -> None:
    story = Story()
    before = story.offsets()
    story.pruning.prune()
    assert (story.log.start_offset, story.log.end_offset) == (6, 8)
    assert story.offsets() == before
    assert all(len(batches) == 2 for batches in before.values())


def test_nothing_is_deleted_before_the_new_records_are_committed() -> None:
    story = Story()
    story.log.commits = False
    story.pruning.prune()
    assert story.log.start_offset == 0
    story.log.commit()
    assert story.log.start_offset == 6


def test_a_short_log_is_left_alone() -> None:
    story = Story()
    story.pruning.prune()
    story.coordinator.write(KEYS[0], StateUpdate(1, 1, 4, 0, ()))
    story.pruning.prune()
    assert (story.log.start_offset, story.log.end_offset) == (6, 9)


def test_after_a_failed_append_the_log_is_pruned_the_next_time() -> None:
    story = Story()
    story.log.refusal = CoordinatorNotAvailable("too few replicas")
    story.pruning.prune()
    assert story.log.start_offset == 0
    story.log.refusal = None
    story.pruning.prune()
    assert story.log.start_offset == 6


def test_the_state_of_a_topic_that_stays_missing_is_deleted() -> None:
    story = Story()
    story.topics.remove(THERE)
    story.pruning.prune()
    assert list(story.offsets()) == KEYS  # the broker may not know the topic yet
    story.topics.add(THERE)
    story.pruning.prune()
    story.topics.remove(THERE)
    story.pruning.prune()
    assert list(story.offsets()) == KEYS
    story.pruning.prune()
    assert list(story.offsets()) == KEYS[:1]
