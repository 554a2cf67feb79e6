"""Guards that allow or refuse a request as a whole."""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import CLUSTER, MESSAGES, Guard, NotAuthorized
from penstock.broker.authorization.refusals import Refusal, when_refused
from penstock.broker.context import AnyHandler, Context
from penstock.broker.handling.turns import PARTITIONS_A_TURN, by_topic, in_turns
from penstock.security.acl import AclOperation
from penstock.wire.messages import alter_client_quotas as altering_quotas
from penstock.wire.messages import alter_partition_reassignments as reassigning
from penstock.wire.messages import alter_replica_log_dirs as moving
from penstock.wire.messages import create_acls as creating_acls
from penstock.wire.messages import delete_acls as deleting_acls
from penstock.wire.messages import describe_client_quotas as describing_quotas
from penstock.wire.messages import elect_leaders as electing
from penstock.wire.messages import write_txn_markers as marking
from penstock.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from penstock.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def left_to_handler(request: Any, ctx: Context, handler: AnyHandler, _access: Access) -> Any:
    """For APIs that need no permission, and those whose handlers check themselves."""
    return handler(request, ctx)


def cluster(*operations: AclOperation) -> Guard:
    """Requires any of these operations on the cluster; otherwise the whole request is refused."""

    def guard(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
        check_cluster(access, operations)
        return handler(request, ctx)

    return guard


def check_cluster(access: Access, operations: Sequence[AclOperation]) -> None:
    """Require any of the operations; if none is allowed, log each refusal."""
    if not any(access.cluster(each, logs=False) for each in operations):
        for each in operations:
            access.cluster(each)
        raise NotAuthorized(CLUSTER)


def cluster_each(respond: Callable[[Any], Any], *operations: AclOperation) -> Guard:
    """Like `cluster`; `respond(request)` makes the response, which refuses each item."""

    def guard(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
        try:
            check_cluster(access, operations)
        except NotAuthorized:
            return respond(request)
        return handler(request, ctx)

    return guard


def markers_refused(request: marking.WriteTxnMarkersRequest) -> Any:
    def steps() -> Generator[None, None, marking.WriteTxnMarkersResponse]:
        markers = []
        count = 0
        for marker in request.markers:
            count += 1 + sum(1 + len(each.partition_indexes) for each in marker.topics)
            if count > PARTITIONS_A_TURN:
                count = 0
                yield
            topics = yield from by_topic(
                marker.topics,
                attrgetter("partition_indexes"),
                lambda _, index: marking.WritableTxnMarkerPartitionResult(index, CLUSTER),
                lambda topic, parts: marking.WritableTxnMarkerTopicResult(
                    name=topic.name, partitions=parts
                ),
            )
            markers.append(
                marking.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)
            )
        return marking.WriteTxnMarkersResponse(markers=markers)

    return in_turns(steps())


def moves_refused(request: moving.AlterReplicaLogDirsRequest) -> Any:
    refusal = Refusal(
        lambda topic, parts: moving.AlterReplicaLogDirTopicResult(
            topic_name=topic.name, partitions=parts
        ),
        attrgetter("partitions"),
        lambda _, index: moving.AlterReplicaLogDirPartitionResult(index, CLUSTER),
    )
    return when_refused(
        [topic for log_dir in request.dirs for topic in log_dir.topics],
        refusal,
        lambda results: moving.AlterReplicaLogDirsResponse(results=results),
    )


def users_refused(request: Any) -> Any:
    return when_refused(
        list(dict.fromkeys(each.name for each in (*request.deletions, *request.upsertions))),
        Refusal(lambda name, _: AlterUserScramCredentialsResult(name, CLUSTER, MESSAGES[CLUSTER])),
        lambda results: AlterUserScramCredentialsResponse(results=results),
    )


def described_users_refused(request: Any) -> DescribeUserScramCredentialsResponse:
    unnamed = DescribeUserScramCredentialsResult("", CLUSTER, MESSAGES[CLUSTER])  # as in Kafka
    return DescribeUserScramCredentialsResponse(
        error_code=CLUSTER,
        error_message=MESSAGES[CLUSTER],
        results=[unnamed] * len(request.users or ()),
    )


def described_quotas_refused(_request: Any) -> describing_quotas.DescribeClientQuotasResponse:
    return describing_quotas.DescribeClientQuotasResponse(
        error_code=CLUSTER, error_message=MESSAGES[CLUSTER], entries=None
    )


def quotas_refused(request: Any) -> Any:
    return when_refused(
        request.entries,
        Refusal(
            lambda entry, _: altering_quotas.ResponseEntryData(
                CLUSTER, MESSAGES[CLUSTER], entry.entity
            )
        ),
        lambda entries: altering_quotas.AlterClientQuotasResponse(entries=entries),
    )


def elect_leaders(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    guard = cluster_each(partial(elections_refused, ctx.version), AclOperation.ALTER)
    return guard(request, ctx, handler, access)


def elections_refused(version: int, request: electing.ElectLeadersRequest) -> Any:
    """Version 0 has errors of partitions only."""
    refusal = Refusal(
        lambda topic, parts: electing.ReplicaElectionResult(topic.topic, parts),
        attrgetter("partitions"),
        lambda _, index: electing.PartitionResult(index, CLUSTER, MESSAGES[CLUSTER]),
    )
    return when_refused(
        request.topic_partitions or (),
        refusal,
        lambda results: electing.ElectLeadersResponse(
            error_code=CLUSTER if version >= 1 else 0, replica_election_results=results
        ),
    )


def reassignments_refused(request: reassigning.AlterPartitionReassignmentsRequest) -> Any:
    refusal = Refusal(
        lambda topic, parts: reassigning.ReassignableTopicResponse(topic.name, parts),
        attrgetter("partitions"),
        lambda _, each: reassigning.ReassignablePartitionResponse(
            each.partition_index, CLUSTER, MESSAGES[CLUSTER]
        ),
    )
    return when_refused(
        request.topics,
        refusal,
        lambda responses: reassigning.AlterPartitionReassignmentsResponse(
            error_code=CLUSTER, error_message=MESSAGES[CLUSTER], responses=responses
        ),
    )


def creations_refused(request: Any) -> creating_acls.CreateAclsResponse:
    refused = creating_acls.AclCreationResult(CLUSTER, MESSAGES[CLUSTER])
    return creating_acls.CreateAclsResponse(results=[refused] * len(request.creations))


def deletions_refused(request: Any) -> deleting_acls.DeleteAclsResponse:
    refused = deleting_acls.DeleteAclsFilterResult(CLUSTER, MESSAGES[CLUSTER], [])
    return deleting_acls.DeleteAclsResponse(filter_results=[refused] * len(request.filters))
