"""`kafka-configs.sh`: describes and alters settings of topics, brokers, groups, users, metrics."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import read_properties, run
from penstock.kafka_tools.entities import OPTIONS as ENTITY_OPTIONS
from penstock.kafka_tools.entities import Entity, entities
from penstock.kafka_tools.options import CLUSTER, Table, flag, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.setting_hints import hint
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.configs import ConfigEntry, ConfigSource, Resource

RESOURCES = {
    "topics": "TOPIC",
    "brokers": "BROKER",
    "broker-loggers": "BROKER_LOGGER",
    "groups": "GROUP",
    "client-metrics": "CLIENT_METRICS",
}
LISTED = frozenset({"topics", "groups", "client-metrics"})
"""Types whose entities can be listed: a name that is not in the list does not exist."""
QUOTA_ENTITIES = ("users", "clients", "ips")
OPTIONS = (
    *CLUSTER,
    text("bootstrap-controller", "HOST:PORT", "Not offered: there is no KRaft."),
    flag("alter", "Alter the configuration of the entity."),
    flag("describe", "List the settings of the entity."),
    flag("all", "With --describe: also static settings and defaults."),
    *ENTITY_OPTIONS,
    text("add-config", "K=V,K=[V,V],...", "Settings to set.", repeats=True),
    text("add-config-file", "FILE", "Settings to set, in properties syntax."),
    text("delete-config", "K,K,...", "Settings to remove.", repeats=True),
    flag("force", "Accepted, without effect."),
)


def configs(args: Arguments) -> int:
    actions = args.given(("alter", "describe"))
    if len(actions) != 1:
        raise UsageError("Command must include exactly one action: --describe, --alter")
    if args.has("bootstrap-controller"):
        raise ToolError("--bootstrap-controller: there is no KRaft; use --bootstrap-server")
    args.forbid("add-config", ["add-config-file"])
    named = entities(args)
    if args.has("alter"):
        changes = _changes(args)
        hint(changes, "settings")
        if any(each.name is None for each in named):
            raise UsageError(
                "An entity name must be specified with --alter of "
                + ", ".join(each.type for each in named)
            )
        run(args, partial(_alter, args, named, changes))
    else:
        run(args, partial(_describe, args, named))
    return 0


def _changes(args: Arguments) -> dict[str, str | None]:
    """Settings to set, and None for those to remove."""
    changes: dict[str, str | None] = {}
    if args.has("add-config-file"):
        changes |= read_properties(args.text("add-config-file"), "--add-config-file")
    for given in args.all("add-config"):
        changes |= parse_configs(given)
    for given in args.all("delete-config"):
        changes |= dict.fromkeys(each.strip() for each in given.split(",") if each.strip())
    if not changes:
        raise UsageError(
            "At least one of --add-config, --add-config-file, or --delete-config must be "
            "specified with --alter"
        )
    return changes


def parse_configs(given: str) -> dict[str, str]:
    """Parse `k1=v1,k2=[v1,v2]`, where brackets protect commas."""
    found = {}
    for pair in re.split(r",(?=[^\]]*(?:\[|$))", given):
        name, equals, value = pair.partition("=")
        if not equals:
            raise ToolError(
                "requirement failed: Invalid entity config: all configs to be added must be in "
                'the format "key=val".'
            )
        bracketed = re.fullmatch(r"\s*\[(.*)\]\s*", value)
        found[name.strip()] = bracketed[1] if bracketed else value.strip()
    return found


def _resource(entity: Entity) -> "Resource":
    from penstock.client.configs import Resource
    from penstock.config.resource_type import ConfigResourceType

    return Resource(ConfigResourceType[RESOURCES[entity.type]], entity.name or "")


def _single(named: Sequence[Entity]) -> Entity:
    for each in named:
        if each.type not in RESOURCES:
            raise UsageError("Only users, clients and ips are combined with one another")
    if len(named) > 1:
        raise UsageError("Only one entity type is allowed, except for users with clients")
    return named[0]


async def _alter(
    args: Arguments, named: Sequence[Entity], changes: Mapping[str, str | None], client: "Client"
) -> None:
    from penstock.client.configs import alter_configs

    if all(each.type in QUOTA_ENTITIES for each in named):
        from penstock.kafka_tools import quota_configs

        await quota_configs.alter(client, named, changes)
        return
    entity = _single(named)
    if entity.type == "topics":
        await _check_topic(client, entity)
    await alter_configs(client, _resource(entity), changes)
    if args.has("zookeeper"):
        print(f"Completed Updating config for entity: {entity.singular} '{entity.name}'.")
    elif entity.name:
        print(f"Completed updating config for {entity.singular} {entity.name}.")
    else:
        print(f"Completed updating default config for {entity.type} in the cluster.")


async def _check_topic(client: "Client", entity: Entity) -> None:
    from penstock.client.admin import describe_topics

    await describe_topics(client, [entity.name or ""])


async def _describe(args: Arguments, named: Sequence[Entity], client: "Client") -> None:
    if all(each.type in QUOTA_ENTITIES for each in named):
        from penstock.kafka_tools import quota_configs

        await quota_configs.describe(client, named)
        return
    entity = _single(named)
    names = await _names(client, entity)
    if entity.name and entity.name not in names and entity.type in LISTED:
        print(
            f"The {entity.singular} '{entity.name}' doesn't exist and doesn't have dynamic config."
        )
        return
    for name in [entity.name] if entity.name is not None else names:
        await _describe_one(args, Entity(entity.type, name), client)


async def _names(client: "Client", entity: Entity) -> list[str]:
    """The names of all entities of a type that have settings; for brokers also "", the default."""
    from penstock.client.admin import describe_cluster, list_topics

    match entity.type:
        case "topics":
            return [each.name for each in await list_topics(client)]
        case "brokers":
            brokers = (await describe_cluster(client)).brokers
            return [*map(str, sorted(brokers)), ""]
        case "groups":
            from penstock.client.config_resources import list_config_resources
            from penstock.client.groups import list_groups
            from penstock.config.resource_type import ConfigResourceType

            configured = await list_config_resources(client, ConfigResourceType.GROUP)
            return sorted({*configured, *(each.id for each in await list_groups(client))})
        case "client-metrics":
            from penstock.client.config_resources import list_config_resources
            from penstock.config.resource_type import ConfigResourceType

            return await list_config_resources(client, ConfigResourceType.CLIENT_METRICS)
        case _:
            brokers = (await describe_cluster(client)).brokers
            return [*map(str, sorted(brokers))]


async def _describe_one(args: Arguments, entity: Entity, client: "Client") -> None:
    from penstock.client.configs import describe_configs

    found = await describe_configs(client, _resource(entity))
    shown = [
        found[name]
        for name in sorted(found)
        if args.has("all") or found[name].source is _own_source(entity)
    ]
    if args.has("zookeeper"):
        pairs = ",".join(f"{each.name}={each.value}" for each in shown)
        print(f"Configs for {entity.singular} '{entity.name}' are {pairs}")
        return
    kind = "All" if args.has("all") else "Dynamic"
    if entity.name:
        print(f"{kind} configs for {entity.singular} {entity.name} are:")
    else:
        print(f"Default configs for {entity.type} in the cluster are:")
    for each in shown:
        print(f"  {_line(each)}")


def _own_source(entity: Entity) -> "ConfigSource":
    from penstock.client.configs import ConfigSource

    match entity.type:
        case "topics":
            return ConfigSource.DYNAMIC_TOPIC_CONFIG
        case "groups":
            return ConfigSource.DYNAMIC_GROUP_CONFIG
        case "client-metrics":
            return ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
        case "broker-loggers":
            return ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
        case _ if entity.name:
            return ConfigSource.DYNAMIC_BROKER_CONFIG
        case _:
            return ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG


def _line(entry: "ConfigEntry") -> str:
    synonyms = ", ".join(
        f"{each.source.name}:{each.name}={_value(each.value)}" for each in entry.synonyms
    )
    sensitive = "true" if entry.is_sensitive else "false"
    return f"{entry.name}={_value(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _value(text: str | None) -> str:
    return "null" if text is None else text


def failed(error: Exception, words: Sequence[str]) -> str:
    from penstock.cli.redaction import redacted_text
    from penstock.client.errors import BrokerRefused
    from penstock.kafka_tools.messages import exception_name, refusal_text

    reason = refusal_text(error)
    if isinstance(error, BrokerRefused):
        reason = f"{exception_name(error)}: {reason}"
    # Kafka's tool would print a new user's password here; it may contain blanks and commas.
    hidden = [re.sub(r"(?is)(password=).*", r"\1[hidden]", word) for word in words]
    given = redacted_text(" ".join(hidden))
    return f"Error while executing config command with args '{given}'\n{reason}"


TOOL = Tool(
    Table(
        "kafka-configs",
        "This tool helps to manipulate and describe entity config for a topic, client, user, "
        "broker, ip, client-metrics or group",
        OPTIONS,
    ),
    configs,
    failed,
)
