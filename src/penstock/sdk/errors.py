"""Exceptions of the SDK, which name topic, partition and offset."""

from collections.abc import Sequence

from penstock.counted import counted


class SdkError(Exception):
    """Base class of the errors that this package raises."""


class SerializationFailed(SdkError):
    """A serializer raised: the record was not sent."""

    def __init__(self, topic: str, part: str, cause: Exception) -> None:
        super().__init__(f"the {part} of a record for {topic} cannot be serialized: {cause}")
        self.topic, self.part = topic, part


class DeserializationFailed(SdkError):
    """A deserializer raised. The consumer's position is after the record: reading goes on."""

    def __init__(
        self, topic: str, partition: int, offset: int, part: str, data: bytes, cause: Exception
    ) -> None:
        super().__init__(
            f"the {part} of {topic}-{partition} at {offset} cannot be deserialized: {cause}"
        )
        self.topic, self.partition, self.offset = topic, partition, offset
        self.part, self.data = part, data


class PartitionRefused(SdkError):
    """A partitioner returned a partition that the topic does not have."""

    def __init__(self, topic: str, partition: object, count: int) -> None:
        super().__init__(
            f"the partitioner chose partition {partition!r} of {topic}, which has {count}"
        )


class QueueFull(SdkError):
    """The producer's queue stayed full for `max_block_ms`."""

    def __init__(self, topic: str, waited_ms: int) -> None:
        super().__init__(
            f"a record for {topic} found no room in the producer's queue for {waited_ms} ms: see "
            "queue.buffering.max.messages and queue.buffering.max.kbytes"
        )


class SendFailed(SdkError):
    """A record was not delivered. `code` is librdkafka's; `too_large` marks the commonest case."""

    def __init__(
        self, topic: str, partition: int | None, code: int, text: str, *, too_large: bool = False
    ) -> None:
        where = topic if partition is None or partition < 0 else f"{topic}-{partition}"
        super().__init__(f"a record for {where} was not delivered: {text}")
        self.topic, self.partition, self.code, self.too_large = topic, partition, code, too_large


class UndeliveredRecords(SdkError):
    """Records failed and no caller had observed it: `flush` and `close` raise this."""

    def __init__(self, count: int, first: Sequence[SendFailed]) -> None:
        reason = first[0] if first else "unknown, or still in the queue"
        super().__init__(
            f"{counted(count, 'record was', 'records were')} not delivered; first: {reason}"
        )
        self.count, self.first = count, tuple(first)


class RecordTooLarge(SdkError):
    """The record exceeds `max_record_bytes`: it becomes a dead letter and is not handled."""

    def __init__(self, size_bytes: int, most_bytes: int) -> None:
        super().__init__(f"{size_bytes} bytes are above max_record_bytes={most_bytes}")


class ConsumerFailed(SdkError):
    """The client gave up, for example because it is not authorized."""


class WorkerError(SdkError):
    """The text of an error that a handler raised in another process and that cannot be pickled."""


class HandlerFailed(SdkError):
    """A handler raised, and neither retry nor dead letters take the record."""

    def __init__(self, topic: str, partition: int, offset: int, cause: BaseException) -> None:
        super().__init__(
            f"the handler failed at {topic}-{partition} offset {offset}: "
            f"{type(cause).__name__}: {cause}"
        )
        self.topic, self.partition, self.offset = topic, partition, offset


class TransactionUnanswered(SdkError):
    """The brokers have not answered how a transaction ended, and the program waits no longer."""

    def __init__(self) -> None:
        super().__init__(
            "no broker says whether the transaction was committed; the next start finds out, and "
            "reads on behind it, or its records again"
        )
