"""Feature levels: how they are set, stored and refused."""

import asyncio

import pytest

from penstock.controller.features import FeatureUpdate, InvalidUpdateVersion, updated
from penstock.errors import ConfigError
from penstock.metadata import paths
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.features import SUPPORTED, Features
from penstock.metadata.records import Feature, decode, encode
from penstock.metadata.tree import Tree
from penstock.testing.controllers import running_controller
from penstock.wire.enums import UpgradeType

HIGHEST = {"group.version": 1, "share.version": 2, "streams.version": 1, "transaction.version": 2}
DOWN = UpgradeType.SAFE_DOWNGRADE


def test_a_new_cluster_begins_at_the_highest_levels(tree: Tree) -> None:
    async def run() -> None:
        async with running_controller(tree) as running:
            assert running.controller.image.features == Features(HIGHEST, 0)
            assert decode(Feature, await running.store.get(paths.FEATURE)).levels() == HIGHEST

    asyncio.run(run())
    assert {name: levels.high for name, levels in SUPPORTED.items()} == HIGHEST


def test_levels_survive_the_controller_and_reach_the_brokers(tree: Tree) -> None:
    lower = HIGHEST | {"transaction.version": 1}

    async def change() -> None:
        async with running_controller(tree) as running:
            wanted = [FeatureUpdate("transaction.version", 1, DOWN)]
            await running.controller.update_features(wanted, validate_only=True)
            assert running.controller.image.features.levels == HIGHEST
            await running.controller.update_features(wanted)
            assert running.last_change.image.features == Features(lower, 1)
            await running.controller.update_features(wanted)
            assert running.controller.image.features.epoch == 1, "nothing has changed"

    async def look() -> None:
        async with running_controller(tree) as running:
            assert running.controller.image.features == Features(lower, 1)

    asyncio.run(change())
    asyncio.run(look())


@pytest.mark.parametrize(("name", "level"), [("transaction.version", 3), ("later.version", 1)])
def test_a_controller_does_not_start_with_an_unsupported_level(
    tree: Tree, name: str, level: int
) -> None:
    async def change() -> None:
        async with running_controller(tree) as running:
            newer = Feature.of(HIGHEST | {name: level})
            await running.store.set(paths.FEATURE, encode(newer))

    async def start() -> None:
        async with running_controller(tree):
            pass

    asyncio.run(change())
    with pytest.raises(ConfigError, match=f"{name} at level {level}"):
        asyncio.run(start())


@pytest.mark.parametrize(
    ("update", "why"),
    [
        (FeatureUpdate("transaction.version", 3), "only supports versions 0-2"),
        (FeatureUpdate("transaction.version", -1, DOWN), "cannot be less than 0"),
        (FeatureUpdate("transaction.version", 1), "without setting the upgrade type"),
        (FeatureUpdate("group.version", 1, DOWN), "downgrade to a newer version"),
        (FeatureUpdate("transaction.version", 1, None), "does not support the given upgrade type"),
        (
            FeatureUpdate("metadata.version", 25),
            "Local controller 0 does not support this feature",
        ),
    ],
)
def test_an_invalid_update_changes_no_level(update: FeatureUpdate, why: str) -> None:
    now = Features({"group.version": 0, "transaction.version": 2}, 4)
    with pytest.raises(InvalidUpdateVersion, match=why):
        updated(now, [FeatureUpdate("group.version", 1), update], 0)


@pytest.mark.parametrize(
    "update",
    [FeatureUpdate("transaction.version", 0, DOWN), FeatureUpdate("transaction.version", 2)],
    ids=["lowest", "as it is"],
)
def test_the_lowest_and_the_present_level_are_valid(update: FeatureUpdate) -> None:
    now = Features({"transaction.version": 2}, 4)
    assert updated(now, [update], 0) == {"transaction.version": update.level}


def test_levels_of_a_cluster_that_is_there_stay(tree: Tree) -> None:
    """Also at epoch 0, and with an unknown feature that is not used: a later version left it."""
    lower = HIGHEST | {"transaction.version": 1, "later.version": 0}

    async def run() -> None:
        store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
        await store.create(paths.FEATURE, encode(Feature.of(lower)))
        async with running_controller(tree) as running:
            assert running.controller.image.features == Features(lower, 0)

    asyncio.run(run())


def test_disabled_levels_have_no_effect() -> None:
    assert Feature(penstock_features=HIGHEST, status=0).levels() == {}
    assert Features({}).level("transaction.version") == 0
