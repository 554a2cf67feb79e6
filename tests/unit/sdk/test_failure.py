"""What happens to a record that failed or was nacked."""

import pickle

import pytest

from penstock.config.delay_route import RetryRoute, route_of
from penstock.record.dead_letter import ATTEMPT
from penstock.record.record import Record as Stored
from penstock.retry.policy import Dead, WaitUntil, delivered_headers, judge
from penstock.sdk.failure import (
    NACK_MS,
    Backoff,
    FailurePolicy,
    Nack,
    RetryLater,
    Tries,
    failure_topics,
    nack,
)
from penstock.sdk.record import Outgoing, Record
from penstock.types import TopicPartition

TOPICS = failure_topics("orders", "billing")
RECORD: Record[bytes, bytes] = Record.make("orders", 0, 7, b"k", b"v")
LATER = Nack(30_000, "not yet")


def policy(retry: Backoff | None = None, *, dead_letters: bool = False) -> FailurePolicy:
    return FailurePolicy(TOPICS, "billing", retry, dead_letters, nacks=3)


@pytest.mark.parametrize("dead_letters", [False, True])
def test_a_nacked_record_without_retries_is_delayed_as_requested(dead_letters: bool) -> None:
    made = policy(dead_letters=dead_letters)
    assert made.decide(RECORD, LATER, Tries(), 0.5) == RetryLater(30_000, is_nack=True)
    assert made.decide(RECORD, Nack(None, ""), Tries(), 0.5) == RetryLater(NACK_MS, is_nack=True)


def test_a_nack_does_not_count_as_an_attempt() -> None:
    made = policy(Backoff("1s,2s", in_place=True), dead_letters=True)
    assert made.decide(RECORD, LATER, Tries(3, 0), 0.5) == RetryLater(30_000, is_nack=True)
    assert Tries(3, 0).after(is_nack=True) == Tries(3, 1)
    assert made.decide(RECORD, ValueError(), Tries(2, 3), 0.5) == RetryLater(2_000)


def test_a_record_nacked_too_often_has_failed() -> None:
    assert policy().decide(RECORD, LATER, Tries(1, 3), 0.5) is None
    letter = policy(dead_letters=True).decide(RECORD, LATER, Tries(1, 3), 0.5)
    assert isinstance(letter, Outgoing)
    assert letter.topic == TOPICS.dead_letters
    retried = policy(Backoff("1s", in_place=True)).decide(RECORD, LATER, Tries(1, 3), 0.5)
    assert retried == RetryLater(30_000)


def test_a_nack_without_a_delay_counts_as_a_failure_if_there_are_retries() -> None:
    made = policy(Backoff("1s,2s", in_place=True))
    assert made.decide(RECORD, Nack(None, ""), Tries(2, 0), 0.5) == RetryLater(2_000)


def by_the_service(outgoing: Outgoing[bytes, bytes], backoff: Backoff) -> Record[bytes, bytes]:
    """The record as the delay service returns it."""
    route = route_of(outgoing.topic, TOPICS.retry_settings(backoff))
    assert isinstance(route, RetryRoute)
    stored = Stored(0, 0, outgoing.key, outgoing.value, list(outgoing.headers))
    at = TopicPartition(outgoing.topic, 0)
    verdict = judge(stored, at, route, 1_000)
    if isinstance(verdict, Dead):
        raise ValueError(verdict.reason)
    assert isinstance(verdict, WaitUntil)
    return Record.make(TOPICS.again, 0, 0, b"k", b"v", delivered_headers(stored, at, verdict))


def test_the_retry_topic_counts_failures_only() -> None:
    backoff = Backoff("1s,2s")
    made, record = policy(backoff, dead_letters=True), RECORD
    failure = RuntimeError("no stock")
    attempts = []
    for error in (LATER, failure, LATER, failure, LATER):
        sent = made.decide(record, error, Tries(), 0.5)
        assert isinstance(sent, Outgoing)
        record = by_the_service(sent, backoff)
        attempts.append(record.header(ATTEMPT))
    assert attempts == [b"1", b"1", b"1", b"2", b"2"]
    sent = made.decide(record, LATER, Tries(), 0.5)
    assert isinstance(sent, Outgoing)
    with pytest.raises(ValueError, match="gave up after 2 attempts: Nack: not yet"):
        by_the_service(sent, backoff)


def test_a_redriven_dead_letter_resets_its_nacks() -> None:
    headers = [("penstock-nacks", b"3:2")]
    record: Record[bytes, bytes] = Record.make(TOPICS.again, 0, 0, b"k", b"v", headers)
    sent = policy(Backoff("1s")).decide(record, LATER, Tries(), 0.5)
    assert isinstance(sent, Outgoing)
    assert ("penstock-nacks", b"1:0") in sent.headers


def test_a_nack_can_be_pickled() -> None:
    with pytest.raises(Nack) as raised:
        nack(delay="30s", reason="not yet")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (copy.delay_ms, str(copy)) == (30_000, "not yet")
