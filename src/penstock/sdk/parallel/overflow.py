"""The compacted topic for progress that is too long for a commit's metadata."""

import time
from collections.abc import Iterable
from typing import Final

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.sdk.defaults import Config, connection_settings
from penstock.sdk.errors import SdkError
from penstock.sdk.parallel.progress import PageState
from penstock.sdk.parallel.saved import page_from_value, page_key, page_number, page_value
from penstock.sdk.producer import Producer
from penstock.sdk.record import Outgoing

ANSWER_S: Final = 30.0


class OverflowTopic:
    """Connects on first use, since most consumers never need it. Only one thread uses it."""

    def __init__(self, config: Config, name: str) -> None:
        self._name = name
        self._config = connection_settings(config)
        self._producer: Producer[bytes, bytes] | None = None

    def write(self, prefix: str, pages: Iterable[PageState]) -> None:
        """Returns when the pages are written."""
        if self._producer is None:
            self._create()
            self._producer = Producer(self._config)
        self._producer.send_all(
            Outgoing(self._name, page_value(each), page_key(prefix, each.number)) for each in pages
        )

    def remove(self, keys: Iterable[bytes]) -> None:
        """Delete pages. This is housekeeping: a page left behind costs 8 KB at most, and is never
        read again.
        """
        if self._producer is None:
            self._producer = Producer(self._config)
        for each in keys:
            self._producer.send(self._name, None, key=each)

    def read(self, prefix: str) -> list[PageState]:
        """The pages under this prefix."""
        consumer = confluent_kafka.Consumer(
            {
                **self._config,
                "group.id": "penstock-progress-reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self._name, 0, 0)])
        pages: dict[int, PageState] = {}
        deadline_s = time.monotonic() + ANSWER_S
        try:
            while time.monotonic() < deadline_s:
                for message in consumer.consume(500, 0.1):
                    error = message.error()
                    if error is not None:
                        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                            return [pages[each] for each in sorted(pages)]
                        continue
                    number = page_number(message.key() or b"", prefix)
                    if number is None:
                        continue
                    value = message.value()
                    if value is None:
                        pages.pop(number, None)
                    else:
                        pages[number] = page_from_value(number, value)
        finally:
            consumer.close()
        raise SdkError(f"the progress in topic {self._name} could not be read in {ANSWER_S:g} s")

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()

    def _create(self) -> None:
        admin = AdminClient(self._config)
        topic = NewTopic(self._name, 1, config={"cleanup.policy": "compact"})
        try:
            admin.create_topics([topic])[self._name].result(ANSWER_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise SdkError(f"topic {self._name} cannot be created: {error.args[0]}") from None
