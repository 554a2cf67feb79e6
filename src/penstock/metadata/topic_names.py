"""The topic that a request means, by name or by id, and the topics that only brokers write."""

import re
from typing import Final

from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import ClusterImage
from penstock.types import Uuid

MAX_NAME_LENGTH: Final = 249
"""Leaves room in a file name for `-`, the partition number and `.<32 digits>-delete`."""

LEGAL_CHARACTERS: Final = re.compile(r"[a-zA-Z0-9._-]+")

COMPACTED_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})
INTERNAL_TOPICS: Final = COMPACTED_TOPICS | {"__share_group_state"}


class InternalTopic(KafkaError):
    """The broker alone writes to its internal topics: foreign records would damage its state."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class UnknownTopicId(KafkaError):
    """No topic has this id."""

    code = ErrorCode.UNKNOWN_TOPIC_ID


def is_legal(name: str) -> bool:
    """Whether a topic can have this name: its logs are in directories of the same name."""
    return (
        len(name) <= MAX_NAME_LENGTH
        and name not in {".", ".."}
        and LEGAL_CHARACTERS.fullmatch(name) is not None
    )


def topic_name(name: str, topic_id: Uuid, image: ClusterImage, *, by_id: bool) -> str:
    """The topic's name; in request versions with topic ids, it is looked up by id."""
    if not by_id:
        return name
    found = image.topic_names.get(topic_id)
    if found is None:
        raise UnknownTopicId(f"no topic has the id {topic_id.hex()}")
    return found
