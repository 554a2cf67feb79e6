"""Failures of `kafka-consumer-groups.sh`, in Kafka's words."""

from penstock.client.errors import BrokerRefused
from penstock.kafka_tools.messages import exception_name, refusal_text


class GroupError(Exception):
    """Something about a group that the tool itself refuses; `bare` is printed as it is."""

    def __init__(self, text: str, *, bare: bool = False) -> None:
        super().__init__(text)
        self.bare = bare


def print_failure(error: Exception) -> None:
    if isinstance(error, GroupError) and error.bare:
        print(f"\nError: {error}")
        return
    reason = refusal_text(error)
    if isinstance(error, BrokerRefused):
        reason = f"{exception_name(error)}: {reason}"
    print(f"\nError: Executing consumer group command failed due to {reason}")
