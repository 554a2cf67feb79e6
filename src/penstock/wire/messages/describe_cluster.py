"""DescribeCluster (key 60); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int16, int32


class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool = False
    endpoint_type: Annotated[int8, V("1+")] = 1
    include_fenced_brokers: Annotated[bool, V("2+")] = False


class DescribeClusterBroker(Message):
    broker_id: int32 = 0
    host: str = ""
    port: int32 = 0
    rack: str | None = None
    is_fenced: Annotated[bool, V("2+")] = False


class DescribeClusterResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    endpoint_type: Annotated[int8, V("1+")] = 1
    cluster_id: str = ""
    controller_id: int32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: int32 = -2147483648
