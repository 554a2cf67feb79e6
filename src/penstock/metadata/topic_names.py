"""Legal topic names, and the topics that only brokers write."""

import re
from typing import Final

from penstock.errors import ErrorCode, KafkaError

MAX_NAME_LENGTH: Final = 249
"""Leaves room in a file name for `-`, the partition number and `.<32 digits>-delete`."""

LEGAL_CHARACTERS: Final = re.compile(r"[a-zA-Z0-9._-]+")

COMPACTED_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})
INTERNAL_TOPICS: Final = COMPACTED_TOPICS | {"__share_group_state"}


class InternalTopic(KafkaError):
    """The broker alone writes to its internal topics: foreign records would damage its state."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


def is_legal(name: str) -> bool:
    """Whether a topic can have this name: its logs are in directories of the same name."""
    return (
        len(name) <= MAX_NAME_LENGTH
        and name not in {".", ".."}
        and LEGAL_CHARACTERS.fullmatch(name) is not None
    )
