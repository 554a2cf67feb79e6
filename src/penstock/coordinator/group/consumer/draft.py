"""A group of the consumer protocol while one operation on it is being decided."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from penstock.config.regex import matching
from penstock.coordinator.group.classic.draft import ClassicGroupDraft
from penstock.coordinator.group.consumer.assignor.subscriber import Subscriber
from penstock.coordinator.group.consumer.assignor.validation import computed_assignment
from penstock.coordinator.group.consumer.context import GroupContext
from penstock.coordinator.group.consumer.group import (
    NO_HASH,
    ConsumerGroup,
    ConsumerGroupState,
    replayed,
)
from penstock.coordinator.group.consumer.member import (
    NO_PARTITIONS,
    ConsumerGroupMember,
    MemberState,
)
from penstock.coordinator.group.consumer.reconcile import reconciled
from penstock.coordinator.group.consumer.records import (
    ConsumerGroupRecord,
    RegexKey,
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    regex_record,
    target_epoch_record,
    target_record,
)
from penstock.coordinator.group.rebalance_log import Rebalance, with_reason


class ConsumerGroupDraft:
    """The group as the operation changes it, and the records that make these changes.

    State that is stored in records changes only by `write`.
    """

    def __init__(
        self, group: ConsumerGroup, context: GroupContext, history: tuple[Rebalance, ...] = ()
    ) -> None:
        self.history = history
        self.group, self.context = group, context
        self.before = group
        self.now_ms = context.now.steady_ms
        self.records: list[ConsumerGroupRecord] = []
        self.finished: list[Rebalance] = []
        self.downgraded: ClassicGroupDraft | None = None
        """The classic group that replaces this group."""
        self.may_see: Callable[[str], bool] | None = None
        """Whether the requesting member may see a topic; None: it may see all."""

    def write(self, *records: ConsumerGroupRecord) -> None:
        for record in records:
            after = replayed(self.group, record)
            assert after is not None, "an operation writes to a group that exists"
            self.group = after
        self.records += records

    def set_deadlines(self, member_id: str, **deadlines: Any) -> None:
        """Change a member's deadlines, which are in no record."""
        member = msgspec.structs.replace(self.group.members[member_id], **deadlines)
        self.group = msgspec.structs.replace(
            self.group, members={**self.group.members, member_id: member}
        )

    def renew_session(self, member_id: str) -> None:
        """Start a new session for the member, of the length that its protocol sets."""
        classic = self.group.members[member_id].classic
        timeout_ms = self.context.settings.consumer_session_timeout_ms
        if classic is not None:
            timeout_ms = classic.session_timeout_ms
        self.set_deadlines(member_id, deadline_ms=self.now_ms + timeout_ms)

    def put_metadata(self, member: ConsumerGroupMember) -> None:
        self.write(member_record(self.group.id, member))

    def put_current(self, member: ConsumerGroupMember) -> None:
        self.write(current_record(self.group.id, member))

    def remove(self, gone: Iterable[ConsumerGroupMember], reason: str) -> None:
        """Remove members; the others are reassigned at their next heartbeats."""
        for member in gone:
            self.write(*member_tombstones(self.group.id, member.id))
        self._forget_regexes()
        self.bump_epoch(reason)

    def replace(self, old: ConsumerGroupMember, new_id: str) -> None:
        """A static member is back under another id: it keeps its assignment."""
        name = self.group.id
        new = msgspec.structs.replace(
            old,
            id=new_id,
            epoch=0,
            previous_epoch=0,
            state=MemberState.STABLE,
            revoking=NO_PARTITIONS,
        )
        assignment = self.group.target.get(old.id, NO_PARTITIONS)
        self.write(*member_tombstones(name, old.id))
        self.put_metadata(new)
        self.write(target_record(name, new_id, assignment))
        self.put_current(new)

    def bump_epoch(self, reason: str) -> None:
        """Start a new group epoch: the target assignment has to be computed again."""
        group = self.group
        self.write(epoch_record(group.id, group.epoch + 1, group.hash_of(self.context.topics)))
        began_ms = group.rebalance_began_ms if group.rebalance_reason else self.now_ms
        self.group = msgspec.structs.replace(
            self.group,
            rebalance_reason=with_reason(group.rebalance_reason, reason),
            rebalance_began_ms=began_ms,
        )

    def refresh_topics(self) -> None:
        """Notice topics that were created, deleted or extended since the group last looked."""
        topics = self.context.topics
        if self.context.is_seen_by(self.group):
            return
        self.group = msgspec.structs.replace(
            self.group, topics_seen=topics, topics_seen_ms=self.now_ms
        )
        for regex in self.group.regexes:
            self.resolve(regex)
        known = self.group.metadata_hash
        if self.group.hash_of(topics) != known:
            self.bump_epoch(
                "topics changed" if known != NO_HASH else "the last rebalance had not finished"
            )

    def resolve(self, regex: str) -> None:
        """Match a regular expression against the present topics that the member may see."""
        found = matching(regex, self.context.topics)
        if self.may_see is not None:
            found = frozenset(filter(self.may_see, found))
        if self.group.regexes.get(regex) != found:
            self.write(regex_record(self.group.id, regex, found, self.context.now.wall_ms))

    def _forget_regexes(self) -> None:
        used = {each.regex for each in self.group.members.values()}
        for regex in self.group.regexes.keys() - used:
            self.write(ConsumerGroupRecord(RegexKey(self.group.id, regex), None))

    def subscribed(self, before: ConsumerGroupMember | None, member: ConsumerGroupMember) -> None:
        """Note a member that joined, or whose metadata may have changed."""
        if before is None or before != member:
            self.put_metadata(member)
        if before is not None and (before.topics, before.regex) == (member.topics, member.regex):
            return
        if member.regex:
            self.resolve(member.regex)
        self._forget_regexes()
        self.bump_epoch(f"{member.id} {'joined' if before is None else 'changed its subscription'}")

    def assign(self) -> None:
        """Compute the target assignment if it is older than the group's epoch and the interval
        since the last one has passed.

        Raises `AssignorFailed` if the assignor fails. A member that changed nothing is not refused
        for that: `delay_next_assignment` lets it go on.
        """
        group, topics = self.group, self.context.topics
        if group.target_epoch == group.epoch or self.assigns_in_ms > 0:
            return
        subscribers = {
            each.id: Subscriber(
                frozenset(topics[name].id for name in group.topics_of(each) if name in topics),
                group.target.get(each.id, NO_PARTITIONS),
                each.instance_id,
                each.rack_id,
            )
            for each in group.members.values()
        }
        counts = {
            topics[name].id: len(topics[name].partitions)
            for name in sorted(group.subscribed_topics & topics.keys())
        }
        assignors = self.context.assignors
        wanted = group.assignor(assignors.default)
        name = wanted if wanted in assignors.by_name else assignors.default
        assignments = computed_assignment(name, assignors.by_name[name], subscribers, counts)
        for member_id, assignment in assignments.items():
            if group.target.get(member_id) != assignment:
                self.write(target_record(group.id, member_id, assignment))
        self.write(target_epoch_record(group.id, group.epoch, self.context.now.wall_ms))
        self.delay_next_assignment()

    @property
    def assigns_in_ms(self) -> int:
        """Time until the next assignment is allowed, so that many joins at once cost one.

        Until then the group's epoch is ahead of its target's (`consumer.assignment.interval.ms`). A
        member that joins gets the epoch of the old target and no partitions; the first heartbeat
        after the interval assigns.
        """
        if self.group.assigned_ms is None:
            return 0
        interval_ms = self.context.settings.consumer_assignment_interval_ms
        return max(self.group.assigned_ms + interval_ms - self.now_ms, 0)

    def delay_next_assignment(self) -> None:
        """Allow the next assignment only after the interval."""
        self.group = msgspec.structs.replace(self.group, assigned_ms=self.now_ms)

    def reconcile(self, member_id: str, owned: frozenset[Any] | None) -> None:
        """Move a member one step towards its target assignment."""
        group = self.group
        before = group.members[member_id]
        after = reconciled(
            before,
            group.target.get(member_id, NO_PARTITIONS),
            group.target_epoch,
            owned,
            lambda: group.held_by_others(member_id),
        )
        if after == before:
            return
        self.put_current(after)
        revokes = after.state is MemberState.UNREVOKED_PARTITIONS
        self.set_deadlines(
            member_id,
            rebalance_deadline_ms=self.now_ms + after.rebalance_timeout_ms if revokes else None,
        )

    def finish(self) -> None:
        """Log the rebalance if it has ended."""
        group = self.group
        has_ended = group.state in {ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY}
        if not group.rebalance_reason or not has_ended:
            return
        duration_ms = self.now_ms - group.rebalance_began_ms
        self.finished.append(
            Rebalance(
                group.epoch,
                group.rebalance_reason,
                len(group.members),
                duration_ms,
                self.context.now.wall_ms,
            )
        )
        self.group = msgspec.structs.replace(group, rebalance_reason="")
