"""The public API for applications; everything else in Penstock may change without notice.

    from penstock.sdk import App, Backoff, Consumer, Json, Producer

Needs the extra `sdk` (confluent-kafka). A name is loaded when it is first used, so a broker that
imports `penstock.sdk.assignor` does not need the extra.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.sdk.app import App, Guarantee
    from penstock.sdk.async_consumer import AsyncConsumer
    from penstock.sdk.async_producer import AsyncProducer
    from penstock.sdk.commit_mode import AsyncCommit, AutoCommit, ManualCommit, SyncCommit
    from penstock.sdk.consumer import Consumer
    from penstock.sdk.dedup import Dedup, RecentIds, Seen, SqliteIds
    from penstock.sdk.delivery import Delivery
    from penstock.sdk.errors import (
        DeserializationFailed,
        HandlerFailed,
        SdkError,
        SendFailed,
        SerializationFailed,
        UndeliveredRecords,
    )
    from penstock.sdk.failure import Backoff, nack
    from penstock.sdk.interceptor import ConsumerInterceptor, ProducerInterceptor
    from penstock.sdk.logical_clock import LogicalClock
    from penstock.sdk.parallel.consumer import ParallelConsumer
    from penstock.sdk.parallel.pool import AsyncioPool, ProcessPool, ThreadPool
    from penstock.sdk.parallel.work import Order
    from penstock.sdk.partitioner import Partitioner, RoundRobin, Sticky
    from penstock.sdk.producer import Producer
    from penstock.sdk.record import Outgoing, Record, RecordMetadata, TimestampType
    from penstock.sdk.reorder import ReorderBuffer
    from penstock.sdk.serde.avro import Avro
    from penstock.sdk.serde.confluent import Registered
    from penstock.sdk.serde.json_schema import JsonSchema
    from penstock.sdk.serde.protobuf import Protobuf
    from penstock.sdk.serde.protocol import Deserializer, Serde, Serializer
    from penstock.sdk.serde.simple import RAW, STRING, Json, MessagePack
    from penstock.sdk.stages import PartitionStages, ProducerStages, SenderStages
    from penstock.sdk.trace import Stage, Trace
    from penstock.sdk.transactions import Transactions

_HOMES = {
    "app": ["App", "Guarantee"],
    "async_consumer": ["AsyncConsumer"],
    "async_producer": ["AsyncProducer"],
    "commit_mode": ["AsyncCommit", "AutoCommit", "ManualCommit", "SyncCommit"],
    "consumer": ["Consumer"],
    "dedup": ["Dedup", "RecentIds", "Seen", "SqliteIds"],
    "delivery": ["Delivery"],
    "errors": [
        "DeserializationFailed",
        "HandlerFailed",
        "SdkError",
        "SendFailed",
        "SerializationFailed",
        "UndeliveredRecords",
    ],
    "failure": ["Backoff", "nack"],
    "interceptor": ["ConsumerInterceptor", "ProducerInterceptor"],
    "logical_clock": ["LogicalClock"],
    "parallel.consumer": ["ParallelConsumer"],
    "parallel.pool": ["AsyncioPool", "ProcessPool", "ThreadPool"],
    "parallel.work": ["Order"],
    "partitioner": ["Partitioner", "RoundRobin", "Sticky"],
    "producer": ["Producer"],
    "record": ["Outgoing", "Record", "RecordMetadata", "TimestampType"],
    "reorder": ["ReorderBuffer"],
    "serde.avro": ["Avro"],
    "serde.confluent": ["Registered"],
    "serde.json_schema": ["JsonSchema"],
    "serde.protobuf": ["Protobuf"],
    "serde.protocol": ["Deserializer", "Serde", "Serializer"],
    "serde.simple": ["RAW", "STRING", "Json", "MessagePack"],
    "stages": ["PartitionStages", "ProducerStages", "SenderStages"],
    "trace": ["Stage", "Trace"],
    "transactions": ["Transactions"],
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "RAW",
    "STRING",
    "App",
    "AsyncCommit",
    "AsyncConsumer",
    "AsyncProducer",
    "AsyncioPool",
    "AutoCommit",
    "Avro",
    "Backoff",
    "Consumer",
    "ConsumerInterceptor",
    "Dedup",
    "Delivery",
    "DeserializationFailed",
    "Deserializer",
    "Guarantee",
    "HandlerFailed",
    "Json",
    "JsonSchema",
    "LogicalClock",
    "ManualCommit",
    "MessagePack",
    "Order",
    "Outgoing",
    "ParallelConsumer",
    "PartitionStages",
    "Partitioner",
    "ProcessPool",
    "Producer",
    "ProducerInterceptor",
    "ProducerStages",
    "Protobuf",
    "RecentIds",
    "Record",
    "RecordMetadata",
    "Registered",
    "ReorderBuffer",
    "RoundRobin",
    "SdkError",
    "Seen",
    "SendFailed",
    "SenderStages",
    "Serde",
    "SerializationFailed",
    "Serializer",
    "SqliteIds",
    "Stage",
    "Sticky",
    "SyncCommit",
    "ThreadPool",
    "TimestampType",
    "Trace",
    "Transactions",
    "UndeliveredRecords",
    "nack",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"penstock.sdk has no {name}")
    try:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    except ModuleNotFoundError as missing:
        from penstock.config.extra import install  # late: only this error needs it

        raise ImportError(
            f"penstock.sdk.{name} needs {missing.name}: {install('sdk')}"
        ) from missing
