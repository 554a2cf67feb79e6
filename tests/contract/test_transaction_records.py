"""The cost of transactions for their coordinator: how many records it writes."""

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from clients.brokers import Target, parameters
from clients.referee import Referee
from penstock.record.build import build_batch, numbered
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.brokers.wire_link import WireLink

pytestmark = [
    pytest.mark.peer,
    # One connection sends all requests, so one broker must lead everything.
    pytest.mark.parametrize("target", parameters(["kafka", "penstock"]), indirect=True),
]

STATE = "__transaction_state"
WAIT_S = 20
T = TypeVar("T")


def until_taken(ask: Callable[[], T], errors: Callable[[T], list[int]]) -> T:
    """Repeats the request while it fails: new coordinators and leaders may not be ready."""
    deadline_s = time.monotonic() + WAIT_S
    while any(errors(answer := ask())):
        assert time.monotonic() < deadline_s, answer
    return answer


def initiated(link: WireLink, name: str) -> InitProducerIdResponse:
    def ask() -> InitProducerIdResponse:
        # Looking for the coordinator creates its topic.
        link.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[name]))
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        answer = link.ask(request)
        assert isinstance(answer, InitProducerIdResponse)
        return answer

    return until_taken(ask, lambda answer: [answer.error_code])


def state_records(referee: Referee) -> int:
    return sum(referee.offset(STATE, at, -1) for at in range(len(referee.partitions(STATE))))


def test_partitions_first_written_by_one_request_are_added_by_one_record(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic, partitions=3)
    with WireLink(target.bootstrap) as link:
        producer = initiated(link, topic)
        batch = build_batch(
            numbered([(b"k", b"v")], 1_700_000_000_000),
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        parts = [PartitionProduceData(index=at, records=bytes(batch)) for at in range(3)]
        request = ProduceRequest(
            transactional_id=topic,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, partition_data=parts)],
        )

        def ask() -> ProduceResponse:
            answer = link.ask(request, version=12)
            assert isinstance(answer, ProduceResponse)
            return answer

        def errors(answer: ProduceResponse) -> list[int]:
            return [part.error_code for part in answer.responses[0].partition_responses]

        before = state_records(referee)
        until_taken(ask, errors)
        assert state_records(referee) == before + 1
        assert [referee.offset(topic, at, -1) for at in range(3)] == [1, 1, 1]
