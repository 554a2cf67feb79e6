"""DescribeConfigs (key 32, v1-v4): settings of topics, groups, client metrics subscriptions, this
broker and all brokers, and the levels of this broker's loggers: each with its source, synonyms,
type and documentation. A group need not exist to have settings.

Refused: unknown topics, other brokers, resources without settings.
"""

from collections.abc import Iterable, Iterator

from penstock.broker.context import Context
from penstock.broker.error_code import MALFORMED
from penstock.broker.translate import log_levels
from penstock.broker.translate.config_resources import own_id
from penstock.config.effective import (
    EffectiveConfig,
    EffectiveSource,
    broker_default_entries,
    broker_entries,
    client_metrics_entries,
    group_entries,
    topic_entries,
)
from penstock.config.resource_type import ConfigResourceType
from penstock.config.setting import Update
from penstock.controller.topic_rules import UnknownTopic, check_name
from penstock.errors import InvalidRequest, KafkaError
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def describe_configs(request: DescribeConfigsRequest, ctx: Context) -> DescribeConfigsResponse:
    def answer(requested: DescribeConfigsResource) -> DescribeConfigsResult:
        kind, name = requested.resource_type, requested.resource_name
        # A set, as a request may name very many.
        keys = frozenset(requested.configuration_keys or ())
        try:
            configs = [
                each for each in described(requested, request, ctx) if not keys or each.name in keys
            ]
        except KafkaError as error:
            return DescribeConfigsResult(
                error_code=error.code,
                # Kafka sends no message either.
                error_message="" if isinstance(error, UnknownTopic) else str(error),
                resource_type=kind,
                resource_name=name,
            )
        return DescribeConfigsResult(resource_type=kind, resource_name=name, configs=configs)

    return DescribeConfigsResponse(results=[answer(each) for each in request.resources])


def described(
    requested: DescribeConfigsResource, request: DescribeConfigsRequest, ctx: Context
) -> Iterator[DescribeConfigsResourceResult]:
    if requested.resource_type == ConfigResourceType.BROKER_LOGGER:
        if not requested.resource_name:
            raise InvalidRequest("loggers are those of one broker")
        own_id(requested.resource_name, ctx.services)
        for name, level in log_levels.loggers():
            source = EffectiveSource.DYNAMIC_BROKER_LOGGER
            yield DescribeConfigsResourceResult(name=name, value=level, config_source=source)
        return
    fixed = requested.resource_type == ConfigResourceType.BROKER
    for entry in entries(requested, ctx):
        yield result_of(entry, request, fixed=fixed)


def entries(requested: DescribeConfigsResource, ctx: Context) -> Iterable[EffectiveConfig]:
    services, name = ctx.services, requested.resource_name
    match requested.resource_type:
        case ConfigResourceType.TOPIC:
            check_name(name)
            if name not in services.cluster.image.topics:
                raise UnknownTopic(f"topic {name} is not known")
            overrides = services.cluster.image.topic_configs.get(name, {})
            return topic_entries(overrides, services.cluster.layers)
        case ConfigResourceType.BROKER:
            if not name:
                return broker_default_entries(services.cluster.layers)
            own_id(name, services)
            return broker_entries(services.cluster.layers)
        case ConfigResourceType.GROUP:
            if not name:
                raise InvalidRequest("Group name must not be empty")
            overrides = services.cluster.image.group_configs.get(name, {})
            return group_entries(overrides, services.cluster.layers)
        case ConfigResourceType.CLIENT_METRICS:
            if not name:
                raise InvalidRequest("Client metrics subscription name must not be empty")
            return client_metrics_entries(services.cluster.image.client_metrics.get(name, {}))
        case _:
            raise InvalidRequest(MALFORMED)


def result_of(
    entry: EffectiveConfig, request: DescribeConfigsRequest, *, fixed: bool
) -> DescribeConfigsResourceResult:
    """`fixed`: settings are read-only unless they can be altered while the broker runs."""
    setting = entry.setting
    synonyms = entry.synonyms if request.include_synonyms else ()
    read_only = fixed and (setting is None or setting.update is Update.READ_ONLY)
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=read_only,
        config_source=entry.source,
        is_sensitive=setting is None or setting.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
            for each in synonyms
        ],
        config_type=0 if setting is None else setting.kind,
        documentation=setting.doc
        if setting is not None and request.include_documentation
        else None,
    )
