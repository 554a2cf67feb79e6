"""Broker errors in Kafka's wording."""

from penstock.client.errors import BrokerRefused
from penstock.errors import ErrorCode

TEXTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "The requested offset is not within the range of offsets "
    "maintained by the server.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Deleting offsets of a topic is forbidden while the "
    "consumer group is actively subscribed to it.",
    ErrorCode.LOG_DIR_NOT_FOUND: "The user-specified log directory is not found in the broker "
    "config.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "The transactionalId could not be found",
    ErrorCode.NOT_CONTROLLER: "This is not the correct controller for this cluster.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "Delegation Token is not found on server.",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation Token feature is not enabled.",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "Specified Principal is not valid Owner/Renewer.",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "Delegation Token is expired.",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "Delegation Token requests are not allowed on "
    "PLAINTEXT/1-way SSL channels and on delegation token authenticated channels.",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "Supplied principalType is not supported.",
}
"""The messages of Kafka's client for errors without a text from the broker."""

_NAMES = {
    "UNKNOWN_TOPIC_OR_PARTITION": "UnknownTopicOrPartitionException",
    "TOPIC_ALREADY_EXISTS": "TopicExistsException",
    "NON_EMPTY_GROUP": "GroupNotEmptyException",
    "GROUP_ID_NOT_FOUND": "GroupIdNotFoundException",
    "INVALID_TOPIC_EXCEPTION": "InvalidTopicException",
    "INVALID_PARTITIONS": "InvalidPartitionsException",
    "INVALID_CONFIG": "InvalidConfigurationException",
    "INVALID_REQUEST": "InvalidRequestException",
    "OFFSET_OUT_OF_RANGE": "OffsetOutOfRangeException",
    "UNKNOWN_MEMBER_ID": "UnknownMemberIdException",
    "DELEGATION_TOKEN_AUTH_DISABLED": "DelegationTokenDisabledException",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": "UnsupportedByAuthenticationException",
}


def refusal_text(error: Exception) -> str:
    """The broker's text, else that of Kafka's client for this code."""
    if isinstance(error, BrokerRefused):
        return error.text or TEXTS.get(error.code, error.code.name)
    return str(error)


def exception_name(error: BrokerRefused) -> str:
    """The class name of the error in Kafka's client."""
    name = _NAMES.get(error.code.name)
    if name is None:
        name = "".join(part.capitalize() for part in error.code.name.split("_"))
        name = name if name.endswith("Exception") else f"{name}Exception"
    return f"org.apache.kafka.common.errors.{name}"
