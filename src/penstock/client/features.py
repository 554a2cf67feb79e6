"""Describes and updates the features of a cluster (KIP-584)."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.client.broker_versions import broker_versions
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused, check
from penstock.client.route import CONTROLLER
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.enums import UpgradeType
from penstock.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


@dataclass(frozen=True, slots=True)
class FeatureRange:
    """A feature's supported range, and its finalized level: 0 if there is none."""

    name: str
    low: int
    high: int
    level: int


@dataclass(frozen=True, slots=True)
class ClusterFeatures:
    """All features by name; the epoch rises with each change, None if it is not reported."""

    features: Mapping[str, FeatureRange]
    epoch: int | None


async def describe_features(client: Client) -> ClusterFeatures:
    """The features as the controller sees them."""
    found = await broker_versions(client, CONTROLLER)
    levels = {each.name: each.max_version_level for each in found.finalized_features}
    return ClusterFeatures(
        {
            each.name: FeatureRange(
                each.name, each.min_version, each.max_version, levels.get(each.name, 0)
            )
            for each in sorted(found.supported_features, key=lambda feature: feature.name)
        },
        found.finalized_features_epoch if found.finalized_features_epoch >= 0 else None,
    )


async def update_features(
    client: Client, levels: Mapping[str, int], upgrade: UpgradeType, *, validate_only: bool = False
) -> dict[str, KafkaError | None]:
    """Set levels; level 0 disables a feature. Returns the error of each feature, if any."""
    request = UpdateFeaturesRequest(
        timeout_ms=client.request_timeout_ms,
        feature_updates=[
            FeatureUpdateKey(
                feature=name,
                max_version_level=level,
                allow_downgrade=upgrade is not UpgradeType.UPGRADE,
                upgrade_type=upgrade,
            )
            for name, level in levels.items()
        ],
        validate_only=validate_only,
    )

    def raise_refusal(response: UpdateFeaturesResponse) -> None:
        check(response.error_code, "features", response.error_message)

    response = await client.call(
        request, UpdateFeaturesResponse, to=CONTROLLER, check=raise_refusal
    )
    # From version 2 on there is one result for all.
    errors = {
        each.feature: BrokerRefused(each.error_code, each.feature, each.error_message)
        for each in response.results
        if each.error_code != ErrorCode.NONE
    }
    return {name: errors.get(name) for name in levels}
