"""Levels of features go up and down as administrators want, within what brokers support."""

from collections.abc import Iterable, Mapping
from enum import IntEnum

from msgspec import Struct

from penstock.controller.office import Office
from penstock.errors import ConfigError, ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.features import SUPPORTED, Features
from penstock.metadata.image import ImageDelta
from penstock.metadata.records import Feature, encode
from penstock.metadata.store import Create, Node, Operation, Set


class InvalidUpdateVersion(KafkaError):
    """A level that the feature cannot have, or not this way."""

    code = ErrorCode.INVALID_UPDATE_VERSION

    def __init__(self, name: str, level: int, why: str) -> None:
        super().__init__(
            "The update failed for all features since the following feature had an error: "
            f"Invalid update version {level} for feature {name}. {why}"
        )


class UpgradeType(IntEnum):
    """By the numbers that requests use. Down is only gone where somebody says so."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(Struct, frozen=True):
    """The level that a feature is to have; None stands for a way that is not known here."""

    name: str
    level: int
    kind: UpgradeType | None = UpgradeType.UPGRADE


def updated(
    features: Features, updates: Iterable[FeatureUpdate], controller: int
) -> Mapping[str, int]:
    """All levels as they are then; one that cannot be refuses them all."""
    levels = dict(features.levels)
    for each in updates:
        _check(each, features.level(each.name), controller)
        levels[each.name] = each.level
    return levels


def _check(update: FeatureUpdate, current: int, controller: int) -> None:
    name, level, supported = update.name, update.level, SUPPORTED.get(update.name)
    if update.kind is None:
        raise InvalidUpdateVersion(
            name, level, "The controller does not support the given upgrade type."
        )
    if supported is None:
        why = "does not support this feature." if level else f"Feature {name} not found."
        raise InvalidUpdateVersion(
            name, level, f"Local controller {controller} {why}" if level else why
        )
    if level < 0:
        raise InvalidUpdateVersion(name, level, "A feature version cannot be less than 0.")
    if level not in supported:
        why = (
            f"Local controller {controller} only supports versions {supported.low}-{supported.high}"
        )
        raise InvalidUpdateVersion(name, level, why)
    upgrades = update.kind is UpgradeType.UPGRADE
    if level < current and upgrades:
        why = (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
        raise InvalidUpdateVersion(name, level, why)
    if level > current and not upgrades:
        raise InvalidUpdateVersion(name, level, "Can't downgrade to a newer version.")


async def prepare(office: Office) -> None:
    """Levels for a cluster that has none yet; refused if a newer broker has gone beyond ours.

    Brokers hear of them with all else that a controller tells when its term begins.
    """
    features = office.image.features
    if features.epoch < 0:
        highest = {name: supported.high for name, supported in SUPPORTED.items()}
        created = Create(paths.FEATURE, encode(Feature.of(highest)))
        office.image = office.image.apply(await _written(office, highest, created))
        return
    for name, level in features.levels.items():
        if level > 0 and (name not in SUPPORTED or level not in SUPPORTED[name]):
            raise ConfigError(
                f"the cluster has the feature {name} at level {level}, which this version of "
                "Penstock does not support: start a newer one, or have it downgrade the feature"
            )


async def write(office: Office, levels: Mapping[str, int]) -> None:
    data = encode(Feature.of(levels))
    operation = Set(paths.FEATURE, data, office.image.features.epoch)
    await office.announce(await _written(office, levels, operation))


async def _written(office: Office, levels: Mapping[str, int], operation: Operation) -> ImageDelta:
    """The node's version is the epoch: a later one is always greater."""
    (node,) = await office.term.write(operation)
    epoch = node.version if isinstance(node, Node) else 0  # as a node that was created has
    return ImageDelta(features=Features(levels, epoch))
