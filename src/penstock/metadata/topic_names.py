"""The topic that a request means, by name or by id, and the topics that only brokers write."""

from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import ClusterImage
from penstock.types import Uuid

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})


class InternalTopic(KafkaError):
    """The broker alone writes to its internal topics: foreign records would damage its state."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class UnknownTopicId(KafkaError):
    """No topic has this id."""

    code = ErrorCode.UNKNOWN_TOPIC_ID


def topic_name(name: str, topic_id: Uuid, image: ClusterImage, *, by_id: bool) -> str:
    """The topic's name, from its id in the versions that give ids instead."""
    if not by_id:
        return name
    found = image.topic_names.get(topic_id)
    if found is None:
        raise UnknownTopicId(f"no topic has the id {topic_id.hex()}")
    return found
