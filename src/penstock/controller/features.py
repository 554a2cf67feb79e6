"""Feature levels: administrators raise and lower them within what brokers support (KIP-584)."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from penstock.controller.context import ControllerContext
from penstock.errors import ConfigError, ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.features import SUPPORTED, Features
from penstock.metadata.image import ImageDelta
from penstock.metadata.records import Feature, encode
from penstock.metadata.store import Create, Node, Operation, Set
from penstock.wire.enums import UpgradeType


class InvalidUpdateVersion(KafkaError):
    """The feature cannot have this level, or not by this kind of update."""

    code = ErrorCode.INVALID_UPDATE_VERSION

    def __init__(self, name: str, level: int, why: str) -> None:
        super().__init__(
            "The update failed for all features since the following feature had an error: "
            f"Invalid update version {level} for feature {name}. {why}"
        )


class FeatureUpdate(Struct, frozen=True):
    """A requested level. The kind is None if the request's number is unknown."""

    name: str
    level: int
    kind: UpgradeType | None = UpgradeType.UPGRADE


def updated(
    features: Features, updates: Iterable[FeatureUpdate], controller: int
) -> Mapping[str, int]:
    """All levels after the updates; one invalid update refuses them all."""
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


async def prepare(context: ControllerContext) -> None:
    """Set the levels of a new cluster; refused if the cluster has levels beyond this version's.

    Brokers receive them with the full state that a new controller sends.
    """
    features = context.image.features
    if features.epoch < 0:
        highest = {name: supported.high for name, supported in SUPPORTED.items()}
        created = Create(paths.FEATURE, encode(Feature.of(highest)))
        context.image = context.image.apply(await _written(context, highest, created))
        return
    for name, level in features.levels.items():
        if level > 0 and (name not in SUPPORTED or level not in SUPPORTED[name]):
            raise ConfigError(
                f"the cluster has the feature {name} at level {level}, which this version of "
                "Penstock does not support: start a newer one, or have it downgrade the feature"
            )


async def update(
    context: ControllerContext, updates: Iterable[FeatureUpdate], *, validate_only: bool
) -> None:
    """All updates, or none."""
    before = context.image.features
    after = updated(before, updates, context.broker)
    if not validate_only and after != before.levels:
        operation = Set(paths.FEATURE, encode(Feature.of(after)), before.epoch)
        await context.announce(await _written(context, after, operation))


async def _written(
    context: ControllerContext, levels: Mapping[str, int], operation: Operation
) -> ImageDelta:
    """The node's version serves as the epoch, because it only grows."""
    (node,) = await context.epoch.write(operation)
    epoch = node.version if isinstance(node, Node) else 0  # the version of a created node
    return ImageDelta(features=Features(levels, epoch))
