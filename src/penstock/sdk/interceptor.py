"""Interceptors: a chain around sending and reading, in the order in which they are given.

An interceptor that raises is logged and skipped: it neither stops the chain nor reaches the caller.
Several threads may call interceptors, so they must guard shared state themselves, as in Kafka's
client.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from penstock.sdk.errors import SendFailed
from penstock.sdk.record import Outgoing, PartitionId, Record, RecordMetadata

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ProducerInterceptor(Protocol):
    """Inherit from it and define what you need; the rest does nothing."""

    def on_send(self, record: Outgoing[Any, Any], /) -> Outgoing[Any, Any]:
        """Called before serialization, on the caller's thread; returns the record to send."""
        return record

    def on_acknowledgement(
        self,
        metadata: RecordMetadata | None,  # noqa: ARG002
        error: SendFailed | None,  # noqa: ARG002
        /,
    ) -> None:
        """Once a broker has the record, or it failed; on the producer's own thread: be quick."""
        return


class ConsumerInterceptor(Protocol):
    """Inherit from it and define what you need; the rest does nothing."""

    def on_consume(self, records: list[Record[Any, Any]], /) -> list[Record[Any, Any]]:
        """Called before the application sees the records; returns those that it should see."""
        return records

    def on_commit(self, offsets: Mapping[PartitionId, int], /) -> None:  # noqa: ARG002
        """Once a commit was acknowledged."""
        return


def sent_through(
    chain: Sequence[ProducerInterceptor], record: Outgoing[Any, Any]
) -> Outgoing[Any, Any]:
    for each in chain:
        try:
            record = _given(each.on_send(record))
        except Exception:
            logger.exception("%s.on_send failed; the record is sent without it", _name(each))
    return record


def tell_acknowledged(
    chain: Sequence[ProducerInterceptor], metadata: RecordMetadata | None, error: SendFailed | None
) -> None:
    for each in chain:
        try:
            each.on_acknowledgement(metadata, error)
        except Exception:
            logger.exception("%s.on_acknowledgement failed", _name(each))


def consumed_through(
    chain: Sequence[ConsumerInterceptor], records: list[Record[Any, Any]]
) -> list[Record[Any, Any]]:
    for each in chain:
        try:
            records = _given(each.on_consume(records))
        except Exception:
            logger.exception("%s.on_consume failed; the records pass without it", _name(each))
    return records


def tell_committed(
    chain: Sequence[ConsumerInterceptor], offsets: Mapping[PartitionId, int]
) -> None:
    for each in chain:
        try:
            each.on_commit(offsets)
        except Exception:
            logger.exception("%s.on_commit failed", _name(each))


def _given(passed: T | None) -> T:
    """Refuse None: an interceptor that only observes easily forgets to return its argument."""
    if passed is None:
        raise TypeError("it returned nothing")
    return passed


def _name(interceptor: object) -> str:
    return type(interceptor).__name__
