"""DescribeCluster (key 60, v0-v2): the cluster's id, its controller and its live brokers.

Refused: endpoint types other than brokers (KIP-919), as there are no others.
"""

from penstock.broker.context import Context
from penstock.broker.translate.brokers import reachable
from penstock.broker.translate.operations import NOT_ASKED, cluster_operations
from penstock.errors import ErrorCode
from penstock.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2

WRONG_ENDPOINT = (
    "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
    "CONTROLLER"
)


def describe_cluster(request: DescribeClusterRequest, ctx: Context) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        return refused(ErrorCode.MISMATCHED_ENDPOINT_TYPE, WRONG_ENDPOINT)
    if request.endpoint_type != BROKERS:
        return refused(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"Unsupported endpoint type {request.endpoint_type}",
        )
    image = ctx.services.cluster.image
    requested = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=image.cluster_id or "",
        controller_id=image.controller,
        brokers=[
            DescribeClusterBroker(broker_id=each.id, host=at.host, port=at.port, rack=each.rack)
            for each, at in reachable(image, ctx.peer.listener)
        ],
        cluster_authorized_operations=cluster_operations(ctx) if requested else NOT_ASKED,
    )


def refused(code: ErrorCode, text: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=text)
