"""The error codes in Metadata: for unknown topics, and for partitions with dead replicas."""

import pytest

from penstock.broker.handlers.metadata import partition, refusal
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import PartitionRegistration
from penstock.types import BrokerId


def error(code: ErrorCode) -> KafkaError:
    found = KafkaError("t")
    found.code = code  # type: ignore[misc]  # see KafkaError
    return found


@pytest.mark.parametrize(
    ("refused", "reported"),
    [
        (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.LEADER_NOT_AVAILABLE),
        (ErrorCode.POLICY_VIOLATION, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_a_topic_that_only_the_controller_knows_yet_gets_a_retriable_error(
    refused: ErrorCode, reported: ErrorCode
) -> None:
    assert refusal("t", {"t": error(refused)}) is reported


def test_a_topic_that_does_not_exist_is_unknown() -> None:
    assert refusal("t", {}) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal("a/b", {}) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_version_0_names_live_replicas_only() -> None:
    """It cannot say which replicas are offline, so an error tells that some are, as in Kafka."""
    one, two = BrokerId(1), BrokerId(2)
    state = PartitionRegistration((one, two), (one, two), leader=one, offline_replicas=(two,))
    old, new = partition(0, state, 0), partition(0, state, 1)
    assert (old.error_code, old.replica_nodes, old.isr_nodes) == (
        ErrorCode.REPLICA_NOT_AVAILABLE,
        [one],
        [one],
    )
    assert (new.error_code, new.replica_nodes, new.isr_nodes) == (ErrorCode.NONE, [1, 2], [1, 2])
