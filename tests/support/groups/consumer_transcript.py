"""Transcripts of groups with members of the consumer protocol, alone or beside classic ones.

    topics t=4 u=1            the topics from now on, with their partition counts
    enter a topics=t,u        a member of the consumer protocol joins; also `static=i regex=t.*
                              assignor=range timeout=5000`
    live a has=t0,t1          its heartbeat, with what it owns; `has=`: nothing; without: not stated
    live a epoch=3            ... with another epoch than its last one
    exit a                    it leaves; `exit a for=now`: temporarily
    join b topics=t has=t0    a classic member joins, as in other transcripts, but with a
                              subscription that the coordinator can read

An assignment is shown as partitions after a member's epoch, if it has changed. Classic members
sync, beat and leave as in other transcripts.
"""

from collections.abc import Iterable

from penstock.coordinator.group.classic.embedded_protocol import assignment_bytes, read_assignment
from penstock.coordinator.group.consumer.heartbeat import ConsumerHeartbeat, ConsumerHeartbeatReply
from penstock.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH, Assignment
from penstock.types import TopicIdPartition
from penstock.wire.codec import encode
from penstock.wire.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from support.groups.consumer_members import topic
from support.groups.group_transcript import GROUP, Story


class ConsumerStory(Story):
    """A group of either protocol."""

    KNOWS_EPOCHS = True

    def _state_text(self) -> str:
        group = self.shard.consumer_groups.get(GROUP)
        if group is None:
            return super()._state_text()
        kinds = ["classic" if each.classic else "consumer" for each in group.members.values()]
        counts = [f"{kinds.count(kind)} {kind}" for kind in ("classic", "consumer")]
        who = f", {' and '.join(counts)}" if "classic" in kinds else ""
        return f"consumer {group.state.value} {group.epoch}{who}"

    def _is_known(self, name: str) -> bool:
        group = self.shard.consumer_groups.get(GROUP)
        return super()._is_known(name) or (group is not None and name in group.members)

    def _topics(self, **counts: str) -> None:
        self.topics = {name: topic(name, int(count)) for name, count in counts.items()}

    def _enter(
        self,
        name: str,
        *,
        topics: str = "",
        static: str | None = None,
        regex: str | None = None,
        assignor: str | None = None,
        timeout: str = "60000",
    ) -> None:
        request = ConsumerHeartbeat(
            member_id=name,
            epoch=0,
            instance_id=static,
            rebalance_timeout_ms=int(timeout),
            topics=frozenset(filter(None, topics.split(","))),
            regex=regex,
            assignor=assignor,
            owned=frozenset(),
        )
        self._heartbeat(f"enter {name}", request)

    def _live(
        self,
        *names: str,
        has: str | None = None,
        epoch: str = "",
        static: str | None = None,
        topics: str | None = None,
    ) -> None:
        for name in names:
            request = ConsumerHeartbeat(
                member_id=name,
                epoch=int(epoch or self.generations.get(name, 0)),
                instance_id=static,
                topics=None if topics is None else frozenset(topics.split(",")),
                owned=None if has is None else self._share(has),
            )
            self._heartbeat(f"live {name}", request)

    def _exit(self, name: str, *, static: str | None = None, **how: str) -> None:
        epoch = LEAVE_STATIC_EPOCH if how.get("for") == "now" else -1
        request = ConsumerHeartbeat(member_id=name, epoch=epoch, instance_id=static)
        self._heartbeat(f"exit {name}", request)

    def _heartbeat(self, name: str, request: ConsumerHeartbeat) -> None:
        def text_of(reply: ConsumerHeartbeatReply) -> str:
            self.generations[reply.member_id] = reply.epoch
            if reply.epoch < 0:
                return "ok"
            assignment = (
                "" if reply.assignment is None else f" {self._named(reply.assignment) or 'nothing'}"
            )
            return f"epoch {reply.epoch}{assignment}"

        self._wait(name, self.groups.consumer_heartbeat(GROUP, request), text_of)

    def _metadata(self, text: str, *, topics: str = "", has: str = "") -> bytes:
        if not topics:
            return super()._metadata(text)
        subscription = ConsumerProtocolSubscription(
            topics=topics.split(","),
            owned_partitions=[TopicPartition(*each) for each in self._by_topic(has).items()],
        )
        return b"\0\1" + encode(subscription, 1)

    def _share_bytes(self, text: str) -> bytes:
        return assignment_bytes(self._by_topic(text), b"\0\1")

    def _share_text(self, assignment: bytes) -> str:
        partitions = read_assignment(assignment).assigned_partitions if assignment else []
        return ",".join(f"{each.topic}{index}" for each in partitions for index in each.partitions)

    def _by_topic(self, text: str) -> dict[str, list[int]]:
        """The partitions `t0,t1,u0`; topics have names of one letter."""
        found: dict[str, list[int]] = {}
        for word in filter(None, text.split(",")):
            found.setdefault(word[0], []).append(int(word[1:]))
        return found

    def _share(self, text: str) -> Assignment:
        by_topic = self._by_topic(text).items()
        return frozenset(
            TopicIdPartition(topic(name, 0).id, index)
            for name, indexes in by_topic
            for index in indexes
        )

    def _named(self, assignment: Iterable[TopicIdPartition]) -> str:
        return ",".join(f"{topic_id.decode()[-1]}{index}" for topic_id, index in sorted(assignment))
