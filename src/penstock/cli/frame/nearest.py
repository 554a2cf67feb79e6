"""Suggests the nearest topic or group for one that a broker does not know."""

from penstock.cli.frame.command import did_you_mean
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.errors import ErrorCode, KafkaError

TOPIC, GROUP = "topic ", "group "


async def with_nearest(client: Client, error: BrokerRefused) -> BrokerRefused:
    """The error, with a hint if there is one. Another failure must not hide this one."""
    try:
        match error.code:
            case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error.about.startswith(TOPIC):
                known = [each.name for each in await client.topics(None)]
                hint = did_you_mean(error.about.removeprefix(TOPIC), known)
            case ErrorCode.GROUP_ID_NOT_FOUND if error.about.startswith(GROUP):
                from penstock.client.groups import list_groups  # late: only for a mistake

                known = [each.id for each in await list_groups(client)]
                hint = did_you_mean(error.about.removeprefix(GROUP), known)
            case _:
                return error
    except KafkaError:
        return error
    return error.with_hint(hint) if hint else error
