"""UpdateFeatures (key 57, v0-v2): change the levels of the cluster's features (KIP-584).

All are updated, or none. Refused: unsupported features, such as KRaft's own; a lower level unless a
downgrade is requested, and a higher one if it is.
"""

from penstock.broker.context import Context
from penstock.controller.features import FeatureUpdate
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.enums import UpgradeType
from penstock.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

KINDS = {each.value: each for each in UpgradeType}


async def update_features(request: UpdateFeaturesRequest, ctx: Context) -> UpdateFeaturesResponse:
    updates = [wanted(each, ctx.version) for each in request.feature_updates]
    try:
        await ctx.services.control.controller.update_features(
            updates, validate_only=request.validate_only
        )
    except KafkaError as error:
        return UpdateFeaturesResponse(error_code=error.code, error_message=str(error))
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(each.name, ErrorCode.NONE, error_message=None)
            for each in updates
        ],
    )


def wanted(update: FeatureUpdateKey, version: int) -> FeatureUpdate:
    if version == 0:
        kind = UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
        return FeatureUpdate(update.feature, update.max_version_level, kind)
    return FeatureUpdate(update.feature, update.max_version_level, KINDS.get(update.upgrade_type))
