"""A parallel consumer as a program: writes the offset of each record that it handles to a file.

    python counting.py BOOTSTRAP TOPIC FILE

The record with the value `stuck` never ends.
"""

import os
import sys
import threading

from penstock.sdk.parallel.consumer import ParallelConsumer
from penstock.sdk.parallel.pool import ThreadPool
from penstock.sdk.parallel.work import Order
from penstock.sdk.record import Record


def main(bootstrap: str, topic: str, file: str) -> None:
    out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def handle(record: Record[bytes, bytes]) -> None:
        if record.value == b"stuck":
            os.write(out, b"stuck\n")
            threading.Event().wait()
        os.write(out, b"%d\n" % record.offset)

    config = {
        "bootstrap.servers": bootstrap,
        "group.id": "counters",
        "auto.offset.reset": "earliest",
        "group.instance.id": "counter-1",
    }
    ParallelConsumer(config, [topic], ThreadPool(handle, 8), order=Order.KEY).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
