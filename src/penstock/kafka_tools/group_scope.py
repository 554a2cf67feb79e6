"""Which partitions `--topic` means: `t`, or `t:0,2`."""

from collections.abc import Iterable

from penstock.kafka_tools.parser import UsageError


def topic_scope(given: Iterable[str]) -> dict[str, list[int]]:
    """Indexes by topic; none means all of its partitions."""
    found: dict[str, list[int]] = {}
    for text in given:
        topic, colon, indexes = text.partition(":")
        try:
            wanted = [int(each) for each in indexes.split(",")] if colon else []
        except ValueError:
            raise UsageError(f"--topic {text}: partitions must be like {topic}:0,2") from None
        found.setdefault(topic, []).extend(wanted)
    return found
