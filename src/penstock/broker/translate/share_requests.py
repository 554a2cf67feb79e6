"""The shared part of ShareFetch and ShareAcknowledge: the session, and acknowledgements."""

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, Protocol

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS
from penstock.broker.fetch.reading import TopicNotAuthorized
from penstock.broker.fetch.sessions import ALWAYS_KEPT
from penstock.broker.parked import Parked
from penstock.broker.share.acknowledgements import AcknowledgedRange, acknowledgements
from penstock.broker.share.errors import InvalidRecordState, InvalidShareRequest, ShareNotServed
from penstock.broker.share.in_flight import Transition
from penstock.broker.share.led_share_partition import LedSharePartition
from penstock.broker.share.sessions import ShareSessionKey
from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.group.share.heartbeat import MEMBER_ID_LENGTH
from penstock.errors import ErrorCode, KafkaError, StorageError
from penstock.metadata.features import SHARE_VERSION
from penstock.metadata.leaders import endpoints, leader_of
from penstock.replication.errors import UnknownTopicId
from penstock.replication.partition_lookup import partition_here
from penstock.security.acl import AclOperation
from penstock.types import TopicIdPartition
from penstock.wire.enums import AcknowledgeType

WRITTEN_MS = 30_000
"""Longer than it takes to write acknowledgements, or to fail."""

Acknowledged = dict[TopicIdPartition, Transition | Exception]
"""The outcome of the acknowledgements of each partition."""


class NamedPartitions(Protocol):
    """A topic of a request."""

    @property
    def partitions(self) -> Sized: ...


def not_served(ctx: Context) -> ShareNotServed | None:
    """The error if share groups are not enabled, or None."""
    if ctx.services.cluster.image.features.level(SHARE_VERSION) < 1:
        return ShareNotServed("share groups need the feature share.version at level 1")
    return None


def session_key(request: Any) -> ShareSessionKey:
    if not request.group_id or not request.member_id:
        raise InvalidShareRequest("a share session needs a group and a member")
    if len(request.member_id) > MEMBER_ID_LENGTH:  # a session holds it, and anyone may open one
        raise InvalidShareRequest(f"the member id is longer than {MEMBER_ID_LENGTH} characters")
    return ShareSessionKey(request.group_id, request.member_id)


class ShareRequest:
    """One request of a session."""

    def __init__(self, key: ShareSessionKey, ctx: Context) -> None:
        self.key, self.ctx = key, ctx
        services = ctx.services
        self._access = (
            None
            if services.authorizer is None
            else services.authorizer.access(ctx.peer, ctx.header.api.name)
        )
        self.config = services.cluster.share_group_config(key.group)

    def check_count(self, partitions: int) -> None:
        """Refuse more partitions than the cluster has, as fetch sessions do: a session with a
        million partitions that do not exist would cost the loop seconds for each request of a few
        bytes.
        """
        services = self.ctx.services
        known = services.share.partitions.sessions.partition_count(self.key)
        if partitions <= max(known, ALWAYS_KEPT):
            return
        topics = services.cluster.image.topics.values()
        if partitions > sum(len(topic.partitions) for topic in topics):
            raise InvalidShareRequest(f"{partitions} partitions are more than the cluster has")

    def shared(self, each: TopicIdPartition) -> LedSharePartition:
        """The share-partition; raises if it cannot be served here."""
        services = self.ctx.services
        name = services.cluster.image.topic_names.get(each.topic_id)
        if name is None:
            raise UnknownTopicId("This server does not host this topic ID.")
        if self._access is not None and not self._access.topic(AclOperation.READ, name):
            raise TopicNotAuthorized("Topic authorization failed.")
        partition = partition_here(
            services.replicas.partitions, services.cluster.image, name, each.partition
        )
        partition.check_leader(-1)
        return services.share.partitions.get(self.key.group, each, partition)

    def acknowledge(
        self,
        given: Iterable[tuple[TopicIdPartition, Sequence[AcknowledgedRange]]],
        *,
        is_renewal: bool,
    ) -> Acknowledged:
        """Apply each partition's acknowledgements, all or none."""
        found: Acknowledged = {}
        for each, ranges in given:
            if not ranges:
                continue
            try:
                asked = acknowledgements(ranges, may_renew=self.ctx.version >= 2)
                if any(one.type is AcknowledgeType.RENEW for one in asked):
                    self._check_renewal(is_renewal=is_renewal)
                found[each] = self.shared(each).acknowledge(self.key.member, asked)
            except PARTITION_ERRORS as error:
                found[each] = error
        return found

    def _check_renewal(self, *, is_renewal: bool) -> None:
        if not is_renewal:
            raise InvalidShareRequest("a request with renewals has to say so: IsRenewAck")
        if not self.config.share_renew_acknowledge_enable:
            raise InvalidRecordState("Renewing acquisition locks is not enabled for the group.")

    def leader(self, each: TopicIdPartition, error: Exception | None) -> tuple[int, int] | None:
        """The id and epoch of the current leader, if the error means another one (KIP-951)."""
        if isinstance(error, KafkaError) and error.code in {
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.FENCED_LEADER_EPOCH,
        }:
            image = self.ctx.services.cluster.image
            return leader_of(image, image.topic_names.get(each.topic_id, ""), each.partition)
        return None

    def endpoints(self, leaders: Iterable[int], make: Callable[..., Any]) -> list[Any]:
        """The addresses of the named leaders."""
        image = self.ctx.services.cluster.image
        return [
            make(node_id=broker.id, host=host, port=port, rack=broker.rack)
            for broker, host, port in endpoints(image, self.ctx.peer.listener, leaders)
        ]


def partition_count(topics: Iterable[NamedPartitions]) -> int:
    """The number of partitions in a request; a topic without any counts as one, as it takes time
    too.
    """
    return sum(len(each.partitions) or 1 for each in topics)


def is_written(acknowledged: Acknowledged) -> bool:
    return all(isinstance(each, Exception) or each.is_done for each in acknowledged.values())


async def until_written(acknowledged: Acknowledged, ctx: Context) -> None:
    """Wait until the acknowledgements are written; only then is the request answered."""
    if is_written(acknowledged):  # perhaps written while the request was queued
        return
    waiting = [each for each in acknowledged.values() if isinstance(each, Transition)]
    parked: Parked[bool] = Parked(
        waiting,
        WRITTEN_MS,
        lambda: True if is_written(acknowledged) else None,
        lambda: False,
    )
    await ctx.services.waiters.future(parked)


def error_of(outcome: Transition | Exception | None) -> tuple[int, str | None]:
    """The error code and message for the outcome of acknowledgements."""
    if isinstance(outcome, Transition):
        if not outcome.is_done:
            outcome = CoordinatorNotAvailable("the acknowledgement is not written yet")
        else:
            outcome = outcome.refused
    if outcome is None:
        return ErrorCode.NONE, None
    if isinstance(outcome, StorageError):
        return ErrorCode.KAFKA_STORAGE_ERROR, str(outcome)
    assert isinstance(outcome, KafkaError), outcome
    return outcome.code, str(outcome)
