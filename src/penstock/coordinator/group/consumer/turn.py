"""One operation on one group of the consumer protocol, while it is being decided."""

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.config.consumer_group import ConsumerGroupConfig
from penstock.config.group import GroupConfig
from penstock.coordinator.group.consumer.assignor.assignor import Assignors
from penstock.coordinator.group.consumer.assignor.subscriber import Subscriber
from penstock.coordinator.group.consumer.assignor.verdict import worked_out
from penstock.coordinator.group.consumer.group import (
    NO_HASH,
    ConsumerGroup,
    GroupState,
    Topics,
    replayed,
)
from penstock.coordinator.group.consumer.member import NOTHING, ConsumerMember, MemberState
from penstock.coordinator.group.consumer.reconcile import reconciled
from penstock.coordinator.group.consumer.records import (
    ConsumerRecord,
    RegexKey,
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    regex_record,
    target_epoch_record,
    target_record,
)
from penstock.coordinator.group.rebalance_log import Rebalance, also
from penstock.coordinator.group.turn import Turn
from penstock.coordinator.outcome import Now
from penstock.coordinator.regex import matching


class World(msgspec.Struct, frozen=True):
    """What decisions rest on beside the group."""

    config: GroupConfig
    settings: ConsumerGroupConfig
    """The group's own."""
    assignors: Assignors
    topics: Topics
    now: Now

    def is_known_to(self, group: ConsumerGroup) -> bool:
        """The group has looked at these topics, and not too long ago.

        Expressions are matched anew after a while even so: who may read what can change.
        """
        interval_ms = self.config.group_consumer_regex_refresh_interval_ms
        return group.seen is self.topics and self.now.steady_ms < group.seen_ms + interval_ms


class ConsumerTurn:
    """The group as it becomes, and the records that make it so: nothing durable changes
    otherwise than by `write`.
    """

    def __init__(
        self, group: ConsumerGroup, world: World, history: tuple[Rebalance, ...] = ()
    ) -> None:
        self.history = history
        self.group, self.world = group, world
        self.before = group
        self.now_ms = world.now.steady_ms
        self.records: list[ConsumerRecord] = []
        self.finished: list[Rebalance] = []
        self.downgraded: Turn | None = None
        """The classic group that takes the place of this one."""

    def write(self, *records: ConsumerRecord) -> None:
        for record in records:
            after = replayed(self.group, record)
            assert after is not None, "a turn changes a group that stays"
            self.group = after
        self.records += records

    def keep(self, member_id: str, **times: Any) -> None:
        """Change what no record holds of a member."""
        member = msgspec.structs.replace(self.group.members[member_id], **times)
        self.group = msgspec.structs.replace(
            self.group, members={**self.group.members, member_id: member}
        )

    def heard(self, member_id: str) -> None:
        """It lives: its session begins anew."""
        classic = self.group.members[member_id].classic
        timeout_ms = self.world.settings.consumer_session_timeout_ms
        if classic is not None:
            timeout_ms = classic.session_timeout_ms
        self.keep(member_id, deadline_ms=self.now_ms + timeout_ms)

    def put_metadata(self, member: ConsumerMember) -> None:
        self.write(member_record(self.group.id, member))

    def put_current(self, member: ConsumerMember) -> None:
        self.write(current_record(self.group.id, member))

    def remove(self, gone: Iterable[ConsumerMember], reason: str) -> None:
        """The others share anew at their next heartbeats."""
        for member in gone:
            self.write(*member_tombstones(self.group.id, member.id))
        self._forget_regexes()
        self.bump(reason)

    def replace(self, old: ConsumerMember, new_id: str) -> None:
        """A static member is back under another id: what it had is still its own."""
        name = self.group.id
        new = msgspec.structs.replace(
            old, id=new_id, epoch=0, previous_epoch=0, state=MemberState.STABLE, revoking=NOTHING
        )
        share = self.group.target.get(old.id, NOTHING)
        self.write(*member_tombstones(name, old.id))
        self.put_metadata(new)
        self.write(target_record(name, new_id, share))
        self.put_current(new)

    def bump(self, reason: str) -> None:
        """A new epoch: the target has to be worked out again."""
        group = self.group
        self.write(epoch_record(group.id, group.epoch + 1, group.hash_of(self.world.topics)))
        began_ms = group.rebalance_began_ms if group.rebalance_reason else self.now_ms
        self.group = msgspec.structs.replace(
            self.group,
            rebalance_reason=also(group.rebalance_reason, reason),
            rebalance_began_ms=began_ms,
        )

    def look_at_topics(self) -> None:
        """Notice topics that came, went or grew since the group last looked."""
        topics = self.world.topics
        if self.world.is_known_to(self.group):
            return
        self.group = msgspec.structs.replace(self.group, seen=topics, seen_ms=self.now_ms)
        for regex in self.group.regexes:
            self.resolve(regex)
        known = self.group.metadata_hash
        if self.group.hash_of(topics) != known:
            self.bump(
                "topics changed" if known != NO_HASH else "the last rebalance was not through"
            )

    def resolve(self, regex: str) -> None:
        """Match an expression against the topics that there are now."""
        found = matching(regex, self.world.topics)
        if self.group.regexes.get(regex) != found:
            self.write(regex_record(self.group.id, regex, found, self.world.now.wall_ms))

    def _forget_regexes(self) -> None:
        used = {each.regex for each in self.group.members.values()}
        for regex in self.group.regexes.keys() - used:
            self.write(ConsumerRecord(RegexKey(self.group.id, regex), None))

    def subscribed(self, before: ConsumerMember | None, member: ConsumerMember) -> None:
        """A member came, or says anew what it wants."""
        if before is None or before != member:
            self.put_metadata(member)
        if before is not None and (before.topics, before.regex) == (member.topics, member.regex):
            return
        if member.regex:
            self.resolve(member.regex)
        self._forget_regexes()
        self.bump(f"{member.id} {'joined' if before is None else 'changed its subscription'}")

    def assign(self) -> None:
        """Work the target out, if it is of an older epoch than the group and it is time for one.

        Refused if the assignor fails; who changed nothing goes on with `put_off`.
        """
        group, topics = self.group, self.world.topics
        if group.target_epoch == group.epoch or self.assigns_in_ms > 0:
            return
        subscribers = {
            each.id: Subscriber(
                frozenset(topics[name].id for name in group.topics_of(each) if name in topics),
                group.target.get(each.id, NOTHING),
                each.instance_id,
                each.rack_id,
            )
            for each in group.members.values()
        }
        counts = {
            topics[name].id: len(topics[name].partitions)
            for name in sorted(group.subscribed_topics & topics.keys())
        }
        assignors = self.world.assignors
        asked = group.assignor(assignors.default)
        name = asked if asked in assignors.by_name else assignors.default
        shares = worked_out(name, assignors.by_name[name], subscribers, counts)
        for member_id, share in shares.items():
            if group.target.get(member_id) != share:
                self.write(target_record(group.id, member_id, share))
        self.write(target_epoch_record(group.id, group.epoch, self.world.now.wall_ms))
        self.put_off()

    @property
    def assigns_in_ms(self) -> int:
        """How long the last assignment holds at least; many that join at once cost one."""
        if self.group.assigned_ms is None:
            return 0
        interval_ms = self.world.settings.consumer_assignment_interval_ms
        return max(self.group.assigned_ms + interval_ms - self.now_ms, 0)

    def put_off(self) -> None:
        """The next assignment comes after the interval."""
        self.group = msgspec.structs.replace(self.group, assigned_ms=self.now_ms)

    def reconcile(self, member_id: str, owned: frozenset[Any] | None) -> None:
        """Take a member one step towards the target."""
        group = self.group
        before = group.members[member_id]
        after = reconciled(
            before,
            group.target.get(member_id, NOTHING),
            group.target_epoch,
            owned,
            lambda: group.taken(member_id),
        )
        if after is before:
            return
        self.put_current(after)
        revokes = after.state is MemberState.UNREVOKED_PARTITIONS
        self.keep(
            member_id,
            act_by_ms=self.now_ms + after.rebalance_timeout_ms if revokes else None,
        )

    def finish(self) -> None:
        """Note a rebalance that is through."""
        group = self.group
        if not group.rebalance_reason or group.state not in {GroupState.STABLE, GroupState.EMPTY}:
            return
        duration_ms = self.now_ms - group.rebalance_began_ms
        self.finished.append(
            Rebalance(
                group.epoch,
                group.rebalance_reason,
                len(group.members),
                duration_ms,
                self.world.now.wall_ms,
            )
        )
        self.group = msgspec.structs.replace(group, rebalance_reason="")
