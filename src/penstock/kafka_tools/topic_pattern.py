"""The topic pattern of `--topic` and `--include`, parsed like Kafka's IncludeList."""

import re

from penstock.kafka_tools.tool import ToolError


def topic_pattern(words: str) -> re.Pattern[str]:
    """The pattern of names and regular expressions, separated by commas."""
    cleaned = words.strip().replace(",", "|").replace(" ", "")
    cleaned = re.sub("^[\"']+|[\"']+$", "", cleaned)
    try:
        return re.compile(cleaned)
    except re.error as error:
        raise ToolError(f"{words} is an invalid regex: {error}") from None
