"""Errors of the group tools, in Kafka's wording."""

from penstock.client.errors import BrokerRefused
from penstock.kafka_tools.messages import exception_name, refusal_text


class GroupError(Exception):
    """A refusal by the tool itself, not by a broker."""


def print_failure(error: Exception, kind: str = "consumer") -> None:
    reason = refusal_text(error)
    if isinstance(error, BrokerRefused):
        reason = f"{exception_name(error)}: {reason}"
    print(f"\nError: Executing {kind} group command failed due to {reason}")
