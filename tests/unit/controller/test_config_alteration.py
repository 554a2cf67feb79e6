"""How the controller alters settings of topics and brokers."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from penstock.controller.configs import (
    AlterOperation,
    BrokerResource,
    ConfigAlteration,
    ConfigResource,
    TopicResource,
    altered,
)
from penstock.controller.topics import TopicSpec
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.tree import Tree
from penstock.testing.controllers import RunningController, running_controller
from penstock.types import BrokerId

TOPIC = TopicResource("t")
THIS, ALL = BrokerResource(BrokerId(0)), BrokerResource(None)
SET, DELETE, APPEND, SUBTRACT = AlterOperation


class OwnClock:
    """Does not advance by itself."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


def with_topic(tree: Tree, work: Callable[[RunningController], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running_controller(tree) as running:
            await running.controller.create_topics([TopicSpec("t", configs={"flush.ms": "7"})])
            await work(running)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("before", "operation", "value", "after"),
    [
        (None, APPEND, "compact", "delete,compact"),
        ("compact", APPEND, "compact,delete", "compact,delete"),
        ("compact,delete", SUBTRACT, "delete", "compact"),
        ("compact", SUBTRACT, "compact", ""),
        (None, SUBTRACT, "compact", "delete"),
        ("compact", SET, "delete", "delete"),
        ("compact", DELETE, None, None),
        (None, DELETE, None, None),
    ],
)
def test_lists_grow_and_shrink_by_items(
    before: str | None, operation: AlterOperation, value: str | None, after: str | None
) -> None:
    current = {} if before is None else {"cleanup.policy": before}
    alteration = ConfigAlteration("cleanup.policy", operation, value)
    assert altered(current, TOPIC, [alteration]).get("cleanup.policy") == after


def test_brokers_receive_a_topics_new_settings(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await running.controller.alter_config(TOPIC, [ConfigAlteration("retention.ms", SET, "5")])
        assert running.last_change.topic_configs == ("t",)
        assert running.last_change.image.topic_configs["t"] == {
            "flush.ms": "7",
            "retention.ms": "5",
        }
        stored = await running.store.get("/config/topics/t")
        assert stored.data == b'{"version":1,"config":{"flush.ms":"7","retention.ms":"5"}}'
        change = await running.store.get("/config/changes/config_change_0000000000")
        assert change.data == b'{"version":2,"entity_path":"topics/t"}'

    with_topic(tree, work)


def test_replacing_resets_settings_that_are_not_named(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await running.controller.replace_config(TOPIC, {"segment.ms": "9"})
        assert running.controller.image.topic_configs["t"] == {"segment.ms": "9"}

    with_topic(tree, work)


def test_a_brokers_settings_are_separate_from_the_default(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await running.controller.alter_config(
            THIS, [ConfigAlteration("log.cleaner.threads", SET, "2")]
        )
        await running.controller.alter_config(
            ALL, [ConfigAlteration("log.retention.ms", SET, "77")]
        )
        image = running.last_change.image
        assert running.last_change.broker_configs
        assert image.broker_configs == {0: {"log.cleaner.threads": "2"}}
        assert image.default_broker_config == {"log.retention.ms": "77"}
        assert await running.store.exists("/config/brokers/<default>")

    with_topic(tree, work)

    async def still_there(running: RunningController) -> None:
        assert running.controller.layers().texts() == {
            "log.cleaner.threads": "2",
            "log.retention.ms": "77",
        }

    with_topic(tree, still_there)


def test_validation_alone_alters_nothing(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await running.controller.alter_config(
            TOPIC, [ConfigAlteration("retention.ms", SET, "5")], validate_only=True
        )
        assert running.controller.image.topic_configs["t"] == {"flush.ms": "7"}

    with_topic(tree, work)


@pytest.mark.parametrize(
    ("resource", "alteration", "code"),
    [
        (TOPIC, ("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
        (TOPIC, ("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (TOPIC, ("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, ("colour", SET, "blue"), ErrorCode.INVALID_CONFIG),
        (TOPIC, ("remote.storage.enable", SET, "true"), ErrorCode.INVALID_CONFIG),
        (TopicResource("u"), ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TopicResource("a b"), ("retention.ms", SET, "1"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TopicResource(""), ("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (THIS, ("broker.id", SET, "9"), ErrorCode.INVALID_REQUEST),
        (THIS, ("log.cleaner.threads", SET, "x"), ErrorCode.INVALID_REQUEST),
        (THIS, ("log.cleaner.threads", SET, "3"), ErrorCode.INVALID_REQUEST),
        (ALL, ("num.io.threads", SET, "3"), ErrorCode.INVALID_REQUEST),
        (ALL, ("listeners", SET, "PLAINTEXT://:1"), ErrorCode.INVALID_REQUEST),
        (ALL, ("log.retention.hours", SET, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_invalid_alterations_are_refused(
    tree: Tree,
    resource: ConfigResource,
    alteration: tuple[str, AlterOperation, str | None],
    code: ErrorCode,
) -> None:
    async def work(running: RunningController) -> None:
        with pytest.raises(KafkaError) as refusal:
            await running.controller.alter_config(resource, [ConfigAlteration(*alteration)])
        assert refusal.value.code == code

    with_topic(tree, work)


def test_a_request_may_alter_a_setting_only_once(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        twice = [ConfigAlteration("flush.ms", SET, "1"), ConfigAlteration("flush.ms", DELETE)]
        with pytest.raises(KafkaError) as refusal:
            await running.controller.alter_config(TOPIC, twice)
        assert refusal.value.code == ErrorCode.INVALID_REQUEST

    with_topic(tree, work)


def test_notifications_are_deleted_after_fifteen_minutes() -> None:
    clock = OwnClock()
    tree = Tree.in_memory(clock)

    async def run() -> list[str]:
        async with running_controller(tree, clock=clock) as running:
            await running.controller.create_topics([TopicSpec("t")])
            for minutes in (0, 10, 6):
                clock.ms += minutes * 60_000
                await running.controller.alter_config(
                    TOPIC, [ConfigAlteration("flush.ms", SET, str(clock.ms))]
                )
            return await running.store.children("/config/changes")

    assert asyncio.run(run()) == ["config_change_0000000001", "config_change_0000000002"]
    tree.close()


@pytest.mark.row("A180")
@pytest.mark.parametrize(
    "alteration",
    [
        ConfigAlteration("cleanup.policy", SET, "delete"),
        ConfigAlteration("cleanup.policy", SET, "compact,delete"),
        ConfigAlteration("cleanup.policy", APPEND, "delete"),
        ConfigAlteration("cleanup.policy", DELETE),
    ],
)
@pytest.mark.parametrize("topic", ["__transaction_state", "__consumer_offsets"])
def test_a_coordinators_log_stays_compacted(
    tree: Tree, topic: str, alteration: ConfigAlteration
) -> None:
    """Retention by time or size would delete live transactional ids and committed offsets."""

    async def run() -> None:
        async with running_controller(tree) as running:
            spec = TopicSpec(topic, configs={"cleanup.policy": "compact"})
            await running.controller.create_topics([spec])
            with pytest.raises(KafkaError, match=f"cleanup.policy of {topic} must stay compact"):
                await running.controller.alter_config(TopicResource(topic), [alteration])
            kept = ConfigAlteration("retention.ms", SET, "1000")
            await running.controller.alter_config(TopicResource(topic), [kept])

    asyncio.run(run())
