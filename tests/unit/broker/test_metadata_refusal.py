"""The error code in Metadata for a topic that this broker does not know."""

import pytest

from penstock.broker.handlers.metadata import refusal
from penstock.errors import ErrorCode, KafkaError


def error(code: ErrorCode) -> KafkaError:
    found = KafkaError("t")
    found.code = code  # type: ignore[misc]  # see KafkaError
    return found


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.LEADER_NOT_AVAILABLE),
        (ErrorCode.POLICY_VIOLATION, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_a_topic_that_only_the_controller_knows_yet_gets_a_retriable_error(
    refused: ErrorCode, told: ErrorCode
) -> None:
    assert refusal("t", {"t": error(refused)}) is told


def test_a_topic_that_does_not_exist_is_unknown() -> None:
    assert refusal("t", {}) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal("a/b", {}) is ErrorCode.INVALID_TOPIC_EXCEPTION
