"""The pattern of topics that `--topic` and `--include` name, as Kafka's IncludeList reads it."""

import re

from penstock.kafka_tools.tool import ToolError


def topic_pattern(words: str) -> re.Pattern[str]:
    """Names and expressions, separated by commas."""
    cleaned = words.strip().replace(",", "|").replace(" ", "")
    cleaned = re.sub("^[\"']+|[\"']+$", "", cleaned)
    try:
        return re.compile(cleaned)
    except re.error as error:
        raise ToolError(f"{words} is an invalid regex: {error}") from None
