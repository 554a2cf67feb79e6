"""Suggests the nearest name for an unknown topic, group or topic setting, or topic creation."""

import re

from penstock.cli.frame.command import did_you_mean
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.errors import ErrorCode, KafkaError

TOPIC, GROUP = "topic ", "group "
UNKNOWN_SETTING = re.compile(r"Unknown topic config name: (\S+)")


async def with_nearest(client: Client, error: BrokerRefused) -> BrokerRefused:
    """The error, with a hint if one is found. If looking for a hint fails, the error
    itself is returned.
    """
    try:
        match error.code:
            case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error.about.startswith(TOPIC):
                name = error.about.removeprefix(TOPIC)
                known = [each.name for each in await client.topics(None)]
                hint = did_you_mean(name, known) or f" `penstock topic create {name}` creates it."
            case ErrorCode.GROUP_ID_NOT_FOUND if error.about.startswith(GROUP):
                from penstock.client.groups import list_groups  # late: only needed for a mistake

                known = [each.id for each in await list_groups(client)]
                hint = did_you_mean(error.about.removeprefix(GROUP), known)
            case ErrorCode.INVALID_CONFIG:
                hint = _setting_meant(error.text or "")
            case _:
                return error
    except KafkaError:
        return error
    return error.with_hint(hint) if hint else error


def _setting_meant(text: str) -> str:
    """A hint for a topic setting that is misspelt or has an old name."""
    found = UNKNOWN_SETTING.search(text)
    if found is None:
        return ""
    from penstock.config.setting import settings  # late: only needed for a mistake
    from penstock.config.topic import TopicConfig
    from penstock.config.unknown import unknown

    nearest = unknown(found[1], settings(TopicConfig)).nearest
    return f" Did you mean {nearest!r}?" if nearest else ""
