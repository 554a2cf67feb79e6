"""Plan 1: a consumer for each thread. Simple, in order per partition, and no wider than the topic
has partitions.

    python examples/applications/consumer_per_thread.py 127.0.0.1:9092 orders 3
"""

import sys
import threading
from collections.abc import Callable

from penstock.sdk import AsyncCommit, Consumer, Record


def main(
    bootstrap: str,
    topic: str,
    threads: str = "3",
    *,
    handle: Callable[[Record[bytes, bytes]], None] = print,
    idle_s: float | None = None,
) -> None:
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": "plan-1",
        "auto.offset.reset": "earliest",
    }

    def work() -> None:
        with Consumer(config, [topic], commit=AsyncCommit()) as consumer:
            for record in consumer.records(idle_s):
                handle(record)

    workers = [threading.Thread(target=work) for _ in range(int(threads))]
    for each in workers:
        each.start()
    for each in workers:
        each.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
