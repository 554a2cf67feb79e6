"""Interceptors in a chain: one stamps each record, the next counts what the brokers took.

python examples/applications/interceptor_chain.py 127.0.0.1:9092 greetings hello world
"""

import sys
import threading
from dataclasses import replace
from typing import Any

from penstock.sdk import STRING, Outgoing, Producer, ProducerInterceptor, RecordMetadata, SendFailed


class Prefix(ProducerInterceptor):
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def on_send(self, record: Outgoing[Any, Any], /) -> Outgoing[Any, Any]:
        return replace(record, value=f"{self.prefix}{record.value}")


class Counter(ProducerInterceptor):
    def __init__(self) -> None:
        self.sent = self.failed = 0
        self._lock = threading.Lock()  # called from several threads: guarding it is our duty

    def on_acknowledgement(self, _: RecordMetadata | None, error: SendFailed | None, /) -> None:
        with self._lock:
            self.sent += error is None
            self.failed += error is not None


def main(bootstrap: str, topic: str, *texts: str) -> str:
    counter = Counter()
    with Producer(
        {"bootstrap.servers": bootstrap}, value=STRING, interceptors=[Prefix("app-1: "), counter]
    ) as producer:
        for text in texts:
            producer.send(topic, text)
    return f"{counter.sent} sent, {counter.failed} failed"


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
