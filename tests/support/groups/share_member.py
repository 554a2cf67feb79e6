"""A member of a share group over the plain protocol, one request at a time."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.record.build import build_batch, numbered
from penstock.record.compression import Codec
from penstock.types import Uuid
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.wire.messages.share_acknowledge import (
    AcknowledgementBatch as Acknowledged,
)
from penstock.wire.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from penstock.wire.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from penstock.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from support.brokers.wire_link import WireLink

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
CONFIG_OF_GROUPS = 32
Given = tuple[int, int, int]
"""First and last offset, and the acknowledgement type."""


class ShareMember:
    """Reads partition 0 of one topic."""

    def __init__(self, bootstrap: str, group: str, name: str, topic: str) -> None:
        self.link = WireLink(bootstrap).__enter__()
        self.group, self.name, self.topic = group, name, topic
        self.epoch = 0
        self.topic_id = topic_id(self.link, topic)

    def join(self) -> ShareGroupHeartbeatResponse:
        self.link.ask(FindCoordinatorRequest(coordinator_keys=[self.group]))
        reply = self.link.ask(
            ShareGroupHeartbeatRequest(
                group_id=self.group, member_id=self.name, subscribed_topic_names=[self.topic]
            )
        )
        assert isinstance(reply, ShareGroupHeartbeatResponse)
        return reply

    def leave(self) -> None:
        self.link.ask(ShareGroupHeartbeatRequest(self.group, self.name, -1))

    def fetch(
        self,
        *given: Given,
        most: int = 100,
        wait_ms: int = 0,
        epoch: int | None = None,
        **more: Any,
    ) -> ShareFetchResponse:
        reply = self.link.ask(
            ShareFetchRequest(
                group_id=self.group,
                member_id=self.name,
                share_session_epoch=self.epoch if epoch is None else epoch,
                max_wait_ms=wait_ms,
                min_bytes=1,
                max_records=most,
                batch_size=most,
                topics=[
                    FetchTopic(
                        self.topic_id,
                        [FetchPartition(0, [AcknowledgementBatch(a, b, [c]) for a, b, c in given])],
                    )
                ],
                **more,
            )
        )
        assert isinstance(reply, ShareFetchResponse)
        if not reply.error_code:
            self.epoch += 1
        return reply

    def acquired(self, *given: Given, **more: Any) -> list[tuple[int, int, int]]:
        """First and last offset of each acquired range, and its delivery count."""
        reply = self.fetch(*given, **more)
        assert reply.error_code == 0, reply
        return [
            (each.first_offset, each.last_offset, each.delivery_count)
            for part in parts(reply)
            for each in part.acquired_records
        ]

    def acknowledge(self, *given: Given, epoch: int | None = None) -> ShareAcknowledgeResponse:
        reply = self.link.ask(
            ShareAcknowledgeRequest(
                group_id=self.group,
                member_id=self.name,
                share_session_epoch=self.epoch if epoch is None else epoch,
                is_renew_ack=any(kind == RENEW for _, _, kind in given),
                topics=[
                    AcknowledgeTopic(
                        self.topic_id,
                        [AcknowledgePartition(0, [Acknowledged(a, b, [c]) for a, b, c in given])],
                    )
                ],
            )
        )
        assert isinstance(reply, ShareAcknowledgeResponse)
        if not reply.error_code:
            self.epoch += 1
        return reply

    def close(self) -> None:
        self.link.__exit__(None, None, None)


def parts(reply: ShareFetchResponse) -> Iterable[Any]:
    return [part for topic in reply.responses for part in topic.partitions]


def topic_id(link: WireLink, topic: str) -> Uuid:
    reply = link.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    assert isinstance(reply, MetadataResponse)
    return reply.topics[0].topic_id


def make_topic(
    link: WireLink, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    wanted = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(*each) for each in (configs or {}).items()],
    )
    reply = link.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000))
    assert isinstance(reply, CreateTopicsResponse)
    assert not any(each.error_code for each in reply.topics), reply


def configure_group(link: WireLink, group: str, settings: Mapping[str, str]) -> None:
    wanted = [AlterableConfig(name, 0, text) for name, text in settings.items()]
    reply = link.ask(
        IncrementalAlterConfigsRequest([AlterConfigsResource(CONFIG_OF_GROUPS, group, wanted)])
    )
    assert isinstance(reply, IncrementalAlterConfigsResponse)
    assert [each.error_code for each in reply.responses] == [0], reply


def produce(link: WireLink, topic: str, count: int, partition: int = 0) -> None:
    """Produces one batch."""
    produce_keys(link, topic, [b"k"] * count, partition)


def produce_keys(link: WireLink, topic: str, keys: Sequence[bytes], partition: int = 0) -> None:
    """Produces one batch of records with these keys."""
    produce_records(link, topic, [(key, b"v%d" % n) for n, key in enumerate(keys)], partition)


def produce_records(
    link: WireLink,
    topic: str,
    pairs: Iterable[tuple[bytes | None, bytes]],
    partition: int = 0,
    codec: Codec = Codec.NONE,
) -> None:
    """Produces one batch of records with these keys and values."""
    # With the current time: retention first runs half a minute after a start and would delete
    # records of 1970.
    batch = build_batch(numbered(pairs, time.time_ns() // 1_000_000), codec=codec)
    reply = link.ask(
        ProduceRequest(
            acks=-1,
            timeout_ms=5000,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    topic_id=topic_id(link, topic),
                    partition_data=[PartitionProduceData(index=partition, records=batch)],
                )
            ],
        )
    )
    assert isinstance(reply, ProduceResponse)
