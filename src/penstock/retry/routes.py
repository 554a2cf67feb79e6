"""Finds the delay and retry topics of a cluster, and makes them keep their records."""

import logging
from collections.abc import Mapping
from typing import Final

from penstock.client.admin import list_topics
from penstock.client.cluster import Client
from penstock.client.configs import Resource, alter_configs, describe_configs
from penstock.config.delay_route import (
    ROUTE_SETTINGS,
    DelayBy,
    DelayRoute,
    Route,
    route_of,
)
from penstock.config.duration import MOST_MS
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ConfigError, KafkaError
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

AT_A_TIME: Final = 500
KEEPS: Final = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
"""Records are deleted by DeleteRecords once they are delivered, and never before. Compaction would
keep only the last record of a key.
"""
TAKES_TIMES: Final = {
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str(MOST_MS),
}
"""For topics whose timestamps are due times: Kafka refuses those over an hour ahead by default."""

log = logging.getLogger(__name__)


class RouteRefusals:
    """Logs why topics are not served, once for each change."""

    def __init__(self) -> None:
        self._logged: Mapping[str, str] = {}

    def log(self, found: Mapping[str, str]) -> None:
        """`found`: the reasons of all topics refused now."""
        for topic, reason in found.items():
            if self._logged.get(topic) != reason:
                log.error("topic %s is not served: %s", topic, reason)
        self._logged = dict(found)


async def find_routes(client: Client, refusals: RouteRefusals | None = None) -> dict[str, Route]:
    """Routes by topic. A topic whose settings contradict each other is left out and named in the
    log; repeated calls should pass the same `refusals`.
    """
    names = [each.name for each in await list_topics(client) if not each.is_internal]
    routes: dict[str, Route] = {}
    refused: dict[str, str] = {}
    for first in range(0, len(names), AT_A_TIME):
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=ConfigResourceType.TOPIC,
                    resource_name=name,
                    configuration_keys=list(ROUTE_SETTINGS),
                )
                for name in names[first : first + AT_A_TIME]
            ]
        )
        response = await client.call(request, DescribeConfigsResponse)
        for each in response.results:  # topics deleted meanwhile have an error and no settings
            texts = {config.name: config.value or "" for config in each.configs}
            try:
                route = route_of(each.resource_name, texts)
            except ConfigError as error:
                refused[each.resource_name] = str(error)
                continue
            if route is not None:
                routes[each.resource_name] = route
    (refusals or RouteRefusals()).log(refused)
    return routes


async def existing_routes(client: Client, routes: Mapping[str, Route]) -> dict[str, Route]:
    """The routes whose topics exist; the others are served once theirs do."""
    found = {each.name for each in await list_topics(client)}
    return {topic: route for topic, route in routes.items() if topic in found}


async def keep_records(client: Client, route: Route) -> None:
    """Turn off retention, since records may wait longer; allow due times as timestamps."""
    topic, wanted = route.topic, dict(KEEPS)
    if isinstance(route, DelayRoute) and route.by is DelayBy.TIMESTAMP:
        wanted |= TAKES_TIMES
    resource = Resource(ConfigResourceType.TOPIC, topic)
    try:
        found = await describe_configs(client, resource, names=list(wanted))
        if any(found[name].value != value for name, value in wanted.items()):
            await alter_configs(client, resource, wanted)
            log.info("retention of %s is off: its records go when they are delivered", topic)
    except KafkaError as error:
        log.warning("retention of %s cannot be turned off: %s", topic, error)
