"""Transcripts of streams groups beside classic members of Kafka Streams.

    topics t=4                       the topics from now on, with their partition counts
    enter a process=1                a member of the streams protocol joins, with a topology that
                                     reads t; its process has that number
    live a has=0,1                   its heartbeat, with the tasks that it owns
    exit a                           it leaves
    join b protocols=stream topics=t process=2 has=t0
                                     a classic member joins, as in transcripts of consumer groups

Tasks are shown as the partitions of the only subtopology. Classic members sync, beat and leave as
in other transcripts.
"""

import struct
from uuid import UUID

from penstock.coordinator.group.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatReply
from penstock.coordinator.group.streams.task import TaskId, Tasks
from penstock.wire.codec import encode
from penstock.wire.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from support.groups.consumer_transcript import ConsumerStory
from support.groups.group_transcript import GROUP, coordinator
from support.groups.streams_members import AT_ONCE, topology


def user_data(process: str, endpoint: str = "", version: int = 11) -> bytes:
    """The user data that Kafka Streams sends: no state, unique field 0, no error, no tags."""
    text = endpoint.encode()
    head = struct.pack(">ii16si", version, 11, UUID(process).bytes, len(text))
    return head + text + struct.pack(">ibii", 0, 0, 0, 0)


class StreamsStory(ConsumerStory):
    """A group of Kafka Streams, of either protocol or both."""

    def _start(self) -> None:
        self.groups = coordinator(
            self.log, self.loop, self.clock, self._config, lambda: self.topics, streams=AT_ONCE
        )
        self.loop.advance()

    def _state_text(self) -> str:
        group = self.shard.streams_groups.get(GROUP)
        if group is None:
            return super()._state_text()
        kinds = ["classic" if each.is_classic else "streams" for each in group.members.values()]
        counts = [f"{kinds.count(kind)} {kind}" for kind in ("classic", "streams")]
        return f"streams {group.state.value} {group.epoch}, {' and '.join(counts)}"

    def _is_known(self, name: str) -> bool:
        group = self.shard.streams_groups.get(GROUP)
        return super()._is_known(name) or (group is not None and name in group.members)

    def _enter(self, name: str, *, process: str = "1") -> None:  # type: ignore[override]
        self._ask(
            f"enter {name}",
            StreamsHeartbeat(
                member_id=name,
                epoch=0,
                rebalance_timeout_ms=60_000,
                topology=topology(),
                active=frozenset(),
                standby=frozenset(),
                warmup=frozenset(),
                process_id=str(UUID(int=int(process))),
            ),
        )

    def _live(self, name: str, *, has: str = "") -> None:  # type: ignore[override]
        request = StreamsHeartbeat(
            member_id=name,
            epoch=self.generations[name],
            active=_tasks(has),
            standby=frozenset(),
            warmup=frozenset(),
        )
        self._ask(f"live {name}", request)

    def _exit(self, name: str) -> None:  # type: ignore[override]
        self._ask(f"exit {name}", StreamsHeartbeat(member_id=name, epoch=-1))

    def _ask(self, name: str, request: StreamsHeartbeat) -> None:
        def text_of(reply: StreamsHeartbeatReply) -> str:
            self.generations[reply.member_id] = reply.epoch
            if reply.epoch < 0:
                return "ok"
            given = reply.assignment
            if given is None:
                return f"epoch {reply.epoch}"
            tasks = ",".join(str(task.partition) for task in sorted(given.active))
            return f"epoch {reply.epoch} {tasks or 'nothing'}"

        self._wait(name, self.groups.streams_heartbeat(GROUP, request), text_of)

    def _metadata(self, text: str, *, topics: str = "", has: str = "", process: str = "") -> bytes:
        if not process:
            return super()._metadata(text, topics=topics, has=has)
        subscription = ConsumerProtocolSubscription(
            topics=topics.split(","),
            user_data=user_data(str(UUID(int=int(process)))),
            owned_partitions=[TopicPartition(*each) for each in self._by_topic(has).items()],
        )
        return b"\0\1" + encode(subscription, 1)


def _tasks(text: str) -> Tasks:
    return frozenset(TaskId("0", int(word)) for word in filter(None, text.split(",")))
