"""Counts the records that it handles, all but one that may hang: a program for tests to kill.

python behind.py BOOTSTRAP TOPIC FILE hang|go
"""

import sys
import threading
from itertools import count
from pathlib import Path

from penstock.sdk.parallel.consumer import ParallelConsumer
from penstock.sdk.parallel.pool import ThreadPool
from penstock.sdk.parallel.work import Order
from penstock.sdk.record import Record

HUNG = 10


def main(bootstrap: str, topic: str, file: str, how: str) -> None:
    handled = count()
    never = threading.Event()

    def handle(record: Record[bytes, bytes]) -> None:
        if record.offset == HUNG and how == "hang":
            never.wait()
        next(handled)

    def report() -> None:
        new = Path(f"{file}.new")
        while not never.wait(0.1):
            new.write_text(
                repr(handled).strip("count()")
            )  # reads the next number without consuming it
            new.replace(file)

    threading.Thread(target=report, daemon=True).start()
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": topic,
        "group.instance.id": "1",  # static: a restart waits for no session
        "auto.offset.reset": "earliest",
    }
    ParallelConsumer(config, [topic], ThreadPool(handle, 4), order=Order.NONE).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
