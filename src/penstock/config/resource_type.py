"""The types of resources that have settings, as numbered in Kafka's protocol."""

from enum import IntEnum


class ConfigResourceType(IntEnum):
    """Kafka's `ConfigResource.Type`."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
