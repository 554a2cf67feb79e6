"""Streams groups on the wire, and their internal topics."""

from typing import Any

from penstock.broker.context import Context
from penstock.broker.translate.capacity import check_room, replicas
from penstock.config.delay_route import ROUTE_SETTINGS
from penstock.controller.topics import TopicSpec
from penstock.coordinator.group.consumer.errors import NotServed
from penstock.coordinator.group.streams.records import Topology
from penstock.coordinator.group.streams.topology import StreamsInternalTopic
from penstock.errors import ErrorCode
from penstock.metadata.features import STREAMS_VERSION
from penstock.security.acl import AclOperation
from penstock.wire.messages import streams_group_topology_value as stored


def not_served(ctx: Context) -> NotServed | None:
    """The error if streams groups are not enabled, or None."""
    if "streams" not in ctx.services.config.group.group_coordinator_rebalance_protocols:
        return NotServed("group.coordinator.rebalance.protocols leaves the streams protocol out")
    if ctx.services.cluster.image.features.level(STREAMS_VERSION) < 1:
        return NotServed("streams groups need the feature streams.version at level 1")
    return None


def topology_of(requested: Any) -> Topology:
    """The topology of a heartbeat in the format of records."""

    def infos(listed: Any) -> list[stored.TopicInfo]:
        return [
            stored.TopicInfo(
                each.name,
                each.partitions,
                each.replication_factor,
                [stored.TopicConfig(pair.key, pair.value) for pair in each.topic_configs],
            )
            for each in listed
        ]

    return Topology(
        requested.epoch,
        [
            stored.Subtopology(
                each.subtopology_id,
                each.source_topics,
                each.source_topic_regex,
                infos(each.state_changelog_topics),
                each.repartition_sink_topics,
                infos(each.repartition_source_topics),
                [
                    stored.CopartitionGroup(
                        together.source_topics,
                        together.source_topic_regex,
                        together.repartition_source_topics,
                    )
                    for together in each.copartition_groups
                ],
            )
            # Sorted: two clients may list the same topology in a different order.
            for each in sorted(requested.subtopologies, key=lambda each: each.subtopology_id)
        ],
    )


async def create_internal(missing: tuple[StreamsInternalTopic, ...], ctx: Context) -> str:
    """Create internal topics of an application; returns the reason if some fail, otherwise ""."""
    # The delay service serves a route with its own rights. The sender of this heartbeat need not be
    # the sender of the topology, so its rights do not tell whether it may write to the target.
    routed = [each.name for each in missing if not each.configs.keys().isdisjoint(ROUTE_SETTINGS)]
    if routed:
        return f"Internal topics have no delays and retries: {', '.join(routed)}."
    services = ctx.services
    access = (
        None
        if services.authorizer is None
        else services.authorizer.access(ctx.peer, ctx.header.api.name)
    )
    if access is not None and not access.cluster(AclOperation.CREATE, logs=False):
        denied = [each.name for each in missing if not access.topic(AclOperation.CREATE, each.name)]
        if denied:
            return f"Unauthorized to CREATE on topics {', '.join(denied)}."
    specs = [
        TopicSpec(each.name, each.partitions, each.replication_factor or -1, configs=each.configs)
        for each in missing
    ]
    check_room(sum(replicas(each, services.config) for each in specs), ctx)
    refused = await services.control.link.create_topics(specs)
    reasons = [
        f"{spec.name}: {error}"
        for spec, error in zip(specs, refused, strict=True)
        if error is not None and error.code != ErrorCode.TOPIC_ALREADY_EXISTS
    ]
    return f"Creation of internal topics failed: {'; '.join(reasons)}" if reasons else ""
