"""Finds the delay and retry topics of a cluster, and sees that they keep their records."""

import logging
from typing import Final

from penstock.client.admin import list_topics
from penstock.client.cluster import Client
from penstock.client.configs import Resource, alter_configs, describe_configs
from penstock.config.delay_route import ROUTE_SETTINGS, Route, route_of
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ConfigError, KafkaError
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

AT_A_TIME: Final = 500
KEEPS: Final = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
"""Records go by DeleteRecords once they are delivered, and never before: compaction would keep only
the last one of a key.
"""

log = logging.getLogger(__name__)


async def find_routes(client: Client) -> dict[str, Route]:
    """By topic. A topic whose settings contradict each other is left out, and named in the log."""
    names = [each.name for each in await list_topics(client) if not each.is_internal]
    routes: dict[str, Route] = {}
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
        for each in response.results:  # topics that are gone meanwhile have an error, and nothing
            texts = {config.name: config.value or "" for config in each.configs}
            try:
                route = route_of(each.resource_name, texts)
            except ConfigError as error:
                log.error("topic %s is not served: %s", each.resource_name, error)
                continue
            if route is not None:
                routes[each.resource_name] = route
    return routes


async def keep_records(client: Client, topic: str) -> None:
    """Turn off the topic's retention: a record may wait for longer."""
    resource = Resource(ConfigResourceType.TOPIC, topic)
    try:
        found = await describe_configs(client, resource, names=list(KEEPS))
        if any(found[name].value != value for name, value in KEEPS.items()):
            await alter_configs(client, resource, KEEPS)
            log.info("retention of %s is off: its records go when they are delivered", topic)
    except KafkaError as error:
        log.warning("retention of %s cannot be turned off: %s", topic, error)
