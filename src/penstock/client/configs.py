"""Describes and alters settings of topics, brokers and groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.route import ANY, Route, ToBroker
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import KafkaError
from penstock.types import BrokerId
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPICS_A_REQUEST = 500


class ConfigSource(IntEnum):
    """The source of a value, numbered as in DescribeConfigs."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class AlterConfigOp(IntEnum):
    """How a setting is altered; APPEND and SUBTRACT are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Resource:
    """A topic or group by name, or a broker by its id; the name "" means all brokers."""

    type: ConfigResourceType
    name: str


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A setting that would apply if the synonyms before it were not set."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting as a broker returns it; the value of a sensitive one is None."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str | None


async def describe_configs(
    client: Client,
    resource: Resource,
    *,
    names: Sequence[str] | None = None,
    documentation: bool = False,
    to: Route | None = None,
) -> dict[str, ConfigEntry]:
    """Settings of a resource. Brokers other than the controller may lack the newest ones."""

    def raise_refusal(response: DescribeConfigsResponse) -> None:
        for result in response.results:
            check(result.error_code, _described(resource), result.error_message)

    wanted = DescribeConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configuration_keys=None if names is None else list(names),
    )
    request = DescribeConfigsRequest(
        resources=[wanted], include_synonyms=True, include_documentation=documentation
    )
    response = await client.call(
        request, DescribeConfigsResponse, to=to or _route(resource), check=raise_refusal
    )
    (result,) = response.results
    return {each.name: _entry(each) for each in result.configs}


async def overrides(client: Client, topic: str) -> dict[str, ConfigEntry]:
    """The topic's own settings."""
    configs = await describe_configs(client, Resource(ConfigResourceType.TOPIC, topic))
    return {
        each.name: each
        for each in configs.values()
        if each.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    }


async def topic_settings(
    client: Client, topics: Sequence[str], name: str
) -> dict[str, str | KafkaError | None]:
    """One setting of many topics, in few requests; a refused topic has an error as value."""
    found: dict[str, str | KafkaError | None] = {}
    for start in range(0, len(topics), TOPICS_A_REQUEST):
        wanted = [
            DescribeConfigsResource(
                resource_type=ConfigResourceType.TOPIC,
                resource_name=topic,
                configuration_keys=[name],
            )
            for topic in topics[start : start + TOPICS_A_REQUEST]
        ]
        response = await client.call(
            DescribeConfigsRequest(resources=wanted), DescribeConfigsResponse
        )
        for result in response.results:
            topic = result.resource_name
            try:
                check(result.error_code, f"topic {topic}", result.error_message)
            except KafkaError as error:
                found[topic] = error
            else:
                found[topic] = next((each.value for each in result.configs), None)
    return found


async def alter_configs(
    client: Client,
    resource: Resource,
    changes: Mapping[str, str | None],
    *,
    validate_only: bool = False,
) -> None:
    """Set each name to its value; None deletes the setting."""
    operations = [
        AlterableConfig(
            name=name,
            config_operation=AlterConfigOp.DELETE if value is None else AlterConfigOp.SET,
            value=value,
        )
        for name, value in changes.items()
    ]

    def raise_refusal(response: IncrementalAlterConfigsResponse) -> None:
        for result in response.responses:
            check(result.error_code, _described(resource), result.error_message)

    altered = AlterConfigsResource(
        resource_type=resource.type, resource_name=resource.name, configs=operations
    )
    request = IncrementalAlterConfigsRequest(resources=[altered], validate_only=validate_only)
    await client.call(
        request, IncrementalAlterConfigsResponse, to=_route(resource), check=raise_refusal
    )


def _route(resource: Resource) -> Route:
    """Only a broker itself knows its own settings."""
    if resource.type is ConfigResourceType.BROKER and resource.name:
        return ToBroker(BrokerId(int(resource.name)))
    return ANY


def _described(resource: Resource) -> str:
    return f"{resource.type.name.lower()} {resource.name}".rstrip()


def _source(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN


def _entry(result: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        result.name,
        result.value,
        _source(result.config_source),
        result.read_only,
        result.is_sensitive,
        tuple(
            ConfigSynonym(each.name, each.value, _source(each.source)) for each in result.synonyms
        ),
        result.documentation,
    )
