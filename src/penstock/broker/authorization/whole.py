"""Guards that allow or refuse a request as a whole."""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import (
    CLUSTER,
    MESSAGES,
    Guard,
    NotAuthorized,
)
from penstock.broker.context import AnyHandler, Context
from penstock.security.acl import AclOperation
from penstock.wire.messages import alter_client_quotas as altering_quotas
from penstock.wire.messages import alter_partition_reassignments as reassigning
from penstock.wire.messages import (
    alter_replica_log_dirs as moving,
)
from penstock.wire.messages import (
    create_acls as creating_acls,
)
from penstock.wire.messages import (
    delete_acls as deleting_acls,
)
from penstock.wire.messages import describe_client_quotas as describing_quotas
from penstock.wire.messages import elect_leaders as electing
from penstock.wire.messages import (
    write_txn_markers as marking,
)
from penstock.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from penstock.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

Op = AclOperation


def anybody(request: Any, ctx: Context, handler: AnyHandler, _access: Access) -> Any:
    """For APIs that need no permission, and those whose handlers ask themselves."""
    return handler(request, ctx)


def cluster(*operations: AclOperation) -> Guard:
    """Any of these operations on the cluster, or the whole request is refused."""

    def guard(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
        check_cluster(access, operations)
        return handler(request, ctx)

    return guard


def check_cluster(access: Access, operations: Sequence[AclOperation]) -> None:
    """Any of the operations will do; that none does is logged of each."""
    if not any(access.cluster(each, logs=False) for each in operations):
        for each in operations:
            access.cluster(each)
        raise NotAuthorized(CLUSTER)


def cluster_each(respond: Callable[[Any], Any], *operations: AclOperation) -> Guard:
    """As `cluster`; `respond` makes the response that says so of each item."""

    def guard(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
        try:
            check_cluster(access, operations)
        except NotAuthorized:
            return respond(request)
        return handler(request, ctx)

    return guard


def markers_refused(request: marking.WriteTxnMarkersRequest) -> marking.WriteTxnMarkersResponse:
    return marking.WriteTxnMarkersResponse(
        markers=[
            marking.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    marking.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            marking.WritableTxnMarkerPartitionResult(index, CLUSTER)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def moves_refused(request: moving.AlterReplicaLogDirsRequest) -> moving.AlterReplicaLogDirsResponse:
    return moving.AlterReplicaLogDirsResponse(
        results=[
            moving.AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    moving.AlterReplicaLogDirPartitionResult(index, CLUSTER)
                    for index in topic.partitions
                ],
            )
            for log_dir in request.dirs
            for topic in log_dir.topics
        ]
    )


def users_refused(request: Any) -> AlterUserScramCredentialsResponse:
    names = dict.fromkeys(each.name for each in (*request.deletions, *request.upsertions))
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(name, CLUSTER, MESSAGES[CLUSTER]) for name in names
        ]
    )


def described_users_refused(request: Any) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        error_code=CLUSTER,
        error_message=MESSAGES[CLUSTER],
        results=[
            DescribeUserScramCredentialsResult(each.name, CLUSTER, MESSAGES[CLUSTER])
            for each in request.users or ()
        ],
    )


def described_quotas_refused(_request: Any) -> describing_quotas.DescribeClientQuotasResponse:
    return describing_quotas.DescribeClientQuotasResponse(
        error_code=CLUSTER, error_message=MESSAGES[CLUSTER], entries=None
    )


def quotas_refused(request: Any) -> altering_quotas.AlterClientQuotasResponse:
    return altering_quotas.AlterClientQuotasResponse(
        entries=[
            altering_quotas.ResponseEntryData(CLUSTER, MESSAGES[CLUSTER], each.entity)
            for each in request.entries
        ]
    )


def elections_refused(request: electing.ElectLeadersRequest) -> electing.ElectLeadersResponse:
    return electing.ElectLeadersResponse(
        error_code=CLUSTER,
        replica_election_results=[
            electing.ReplicaElectionResult(
                topic.topic,
                [
                    electing.PartitionResult(index, CLUSTER, MESSAGES[CLUSTER])
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def reassignments_refused(
    request: reassigning.AlterPartitionReassignmentsRequest,
) -> reassigning.AlterPartitionReassignmentsResponse:
    return reassigning.AlterPartitionReassignmentsResponse(
        error_code=CLUSTER,
        error_message=MESSAGES[CLUSTER],
        responses=[
            reassigning.ReassignableTopicResponse(
                topic.name,
                [
                    reassigning.ReassignablePartitionResponse(
                        each.partition_index, CLUSTER, MESSAGES[CLUSTER]
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def creations_refused(request: Any) -> creating_acls.CreateAclsResponse:
    refused = creating_acls.AclCreationResult(CLUSTER, MESSAGES[CLUSTER])
    return creating_acls.CreateAclsResponse(results=[refused] * len(request.creations))


def deletions_refused(request: Any) -> deleting_acls.DeleteAclsResponse:
    refused = deleting_acls.DeleteAclsFilterResult(CLUSTER, MESSAGES[CLUSTER], [])
    return deleting_acls.DeleteAclsResponse(filter_results=[refused] * len(request.filters))
