"""Interceptors that return nothing, typed records, and which part of a record is broken."""

from typing import Any

from confluent_kafka import Message

from penstock.sdk.interceptor import consumed_through, sent_through
from penstock.sdk.reading import RecordReader
from penstock.sdk.record import Outgoing, Record
from penstock.sdk.serde import Json


class Looking:
    """Forgets to return the records."""

    def on_send(self, _record: Outgoing[Any, Any]) -> Any: ...

    def on_consume(self, _records: list[Record[Any, Any]]) -> Any: ...


def test_an_interceptor_that_returns_nothing_is_ignored() -> None:
    chain: Any = [Looking()]
    outgoing = Outgoing[Any, Any]("t")
    records: list[Record[Any, Any]] = [Record.make("t", 0, 0)]
    assert sent_through(chain, outgoing) is outgoing
    assert consumed_through(chain, records) is records


def test_a_null_key_is_not_blamed_for_a_broken_value() -> None:
    reader = RecordReader(Json(), Json())
    message = Message(topic="t", partition=0, offset=0, value=b"{")
    assert reader.failure(message, ValueError()).part == "value"
    message = Message(topic="t", partition=0, offset=0, value=b"{", key=b"{")
    assert reader.failure(message, ValueError()).part == "key"
