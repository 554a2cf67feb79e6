"""ApiVersions (key 18); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32, int64


class ApiVersionsRequest(Message):
    client_software_name: Annotated[str, V("3+")] = ""
    client_software_version: Annotated[str, V("3+")] = ""
    cluster_id: Annotated[str | None, V("5+")] = None
    node_id: Annotated[int32, V("5+")] = -1


class ApiVersion(Message):
    api_key: int16 = 0
    min_version: int16 = 0
    max_version: int16 = 0


class SupportedFeatureKey(Message):
    name: Annotated[str, V("3+")] = ""
    min_version: Annotated[int16, V("3+")] = 0
    max_version: Annotated[int16, V("3+")] = 0


class FinalizedFeatureKey(Message):
    name: Annotated[str, V("3+")] = ""
    max_version_level: Annotated[int16, V("3+")] = 0
    min_version_level: Annotated[int16, V("3+")] = 0


class ApiVersionsResponse(Message):
    error_code: int16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    supported_features: Annotated[list[SupportedFeatureKey], V("3+", tag=0)] = []
    finalized_features_epoch: Annotated[int64, V("3+", tag=1)] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], V("3+", tag=2)] = []
    zk_migration_ready: Annotated[bool, V("3+", tag=3)] = False
