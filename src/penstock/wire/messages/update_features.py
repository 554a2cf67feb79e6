"""UpdateFeatures (key 57); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int16, int32


class FeatureUpdateKey(Message):
    feature: str = ""
    max_version_level: int16 = 0
    allow_downgrade: Annotated[bool, V("0")] = False
    upgrade_type: Annotated[int8, V("1+")] = 1


class UpdateFeaturesRequest(Message):
    timeout_ms: int32 = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Annotated[bool, V("1+")] = False


class UpdatableFeatureResult(Message):
    feature: str = ""
    error_code: int16 = 0
    error_message: str | None = ""


class UpdateFeaturesResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""
    results: Annotated[list[UpdatableFeatureResult], V("0-1")] = []
