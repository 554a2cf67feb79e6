"""Handles records in the order of their keys, with handlers that fail at random: to be killed.

    python keyed.py BOOTSTRAP TOPIC FILE SEED

Each success is a line of FILE: process, key, value. So is each time that the group removes the
process, since the machine has let it wait for too long: key LOST. SIGTERM ends it in good order.
"""

import logging
import os
import random
import signal
import sys
import time

from penstock.sdk.parallel.consumer import REMOVED, Again, ParallelConsumer
from penstock.sdk.parallel.pool import ThreadPool
from penstock.sdk.parallel.work import Order
from penstock.sdk.record import Record

LOST = b"lost"
REDO_AT_MOST = 200
SETTINGS = {"session.timeout.ms": 1000, "heartbeat.interval.ms": 200}
"""Short, so that a killed member is removed soon."""


class Losses(logging.Handler):
    """Writes a line each time the group has removed this process."""

    def __init__(self, out: int) -> None:
        super().__init__()
        self._out = out

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith(REMOVED):
            os.write(self._out, b"%d %b 0\n" % (os.getpid(), LOST))


def main(bootstrap: str, topic: str, file: str, seed: str) -> None:
    out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    dice = random.Random(seed)
    logging.getLogger("penstock").addHandler(Losses(out))

    def handle(record: Record[bytes, bytes]) -> None:
        time.sleep(dice.random() * 0.004)
        if dice.random() < 0.1:
            raise RuntimeError("unlucky")
        os.write(out, b"%d %b %b\n" % (os.getpid(), record.key or b"", record.value or b""))

    consumer: ParallelConsumer[bytes, bytes] = ParallelConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "cooperative-sticky",
            **SETTINGS,
        },
        [topic],
        ThreadPool(handle, 8),
        order=Order.KEY,
        on_failure=lambda *_: Again(dice.randrange(30)),
        most_buffered=100,
        redo_at_most=REDO_AT_MOST,
    )
    signal.signal(signal.SIGTERM, lambda *_: consumer.stop())
    consumer.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
