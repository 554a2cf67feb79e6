"""Throttles the copying of reassigned partitions, as kafka-reassign-partitions does."""

from collections.abc import Iterable, Mapping, Sequence

from penstock.client.cluster import Client
from penstock.client.configs import ConfigSource, Resource, alter_configs, describe_configs
from penstock.client.route import CONTROLLER
from penstock.config.resource_type import ConfigResourceType
from penstock.types import BrokerId, TopicPartition

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"
ALL_REPLICAS = "*"

Changes = Mapping[Resource, Mapping[str, str | None]]
"""Settings by topic or broker; None deletes one."""


def throttled_replicas(
    moves: Iterable[tuple[TopicPartition, Sequence[BrokerId], Sequence[BrokerId]]],
) -> dict[str, dict[str, str]]:
    """Settings by topic, for moves of a partition from its sources to added brokers.

    Sources are throttled as leaders, added brokers as followers; followers in sync are not.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for (topic, partition), sources, added in moves:
        settings = found.setdefault(topic, {LEADERS: [], FOLLOWERS: []})
        settings[LEADERS] += [f"{partition}:{broker}" for broker in sources]
        settings[FOLLOWERS] += [f"{partition}:{broker}" for broker in added]
    return {
        topic: {name: ",".join(pairs) for name, pairs in settings.items()}
        for topic, settings in found.items()
    }


def throttle(
    topics: Mapping[str, Mapping[str, str]], brokers: Iterable[BrokerId], rate: int
) -> dict[Resource, dict[str, str | None]]:
    """The settings during a reassignment."""
    changes: dict[Resource, dict[str, str | None]] = {
        Resource(ConfigResourceType.TOPIC, topic): dict(settings)
        for topic, settings in topics.items()
    }
    for each in brokers:
        changes[Resource(ConfigResourceType.BROKER, str(each))] = dict.fromkeys(RATES, str(rate))
    return changes


async def before(client: Client, changes: Changes) -> dict[Resource, dict[str, str | None]]:
    """The operator's own values of the same settings; None where there is none."""
    found: dict[Resource, dict[str, str | None]] = {}
    for resource, wanted in changes.items():
        if resource.type is ConfigResourceType.TOPIC:
            # From the controller: another broker may not know yet what an operator has just set,
            # and it would be lost.
            own, to = ConfigSource.DYNAMIC_TOPIC_CONFIG, CONTROLLER
        else:
            own, to = ConfigSource.DYNAMIC_BROKER_CONFIG, None
        entries = await describe_configs(client, resource, names=list(wanted), to=to)
        found[resource] = {
            name: entries[name].value if name in entries and entries[name].source is own else None
            for name in wanted
        }
    return found


def together(changes: Changes, known: Changes) -> dict[Resource, dict[str, str | None]]:
    """The changes, with replicas that an operator throttles added to ours."""
    return {
        resource: {
            name: _joined(known[resource][name], value)
            if name in {LEADERS, FOLLOWERS} and value is not None
            else value
            for name, value in wanted.items()
        }
        for resource, wanted in changes.items()
    }


def _joined(own: str | None, added: str) -> str:
    if own == ALL_REPLICAS:
        return own
    return ",".join(dict.fromkeys(each for each in f"{own or ''},{added}".split(",") if each))


async def apply(client: Client, changes: Changes) -> None:
    for resource, settings in changes.items():
        await alter_configs(client, resource, settings)
