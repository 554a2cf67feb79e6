"""Copy a topic exactly once: what is read and what is written are one transaction.

python examples/applications/exactly_once_copy.py 127.0.0.1:9092 orders copies
"""

import sys

from penstock.sdk import Transactions


def main(bootstrap: str, source: str, target: str, *, idle_s: float | None = None) -> None:
    config = {"bootstrap.servers": bootstrap}
    with Transactions(config, [source], group="copiers", instance="1") as transactions:
        for records, output in transactions.batches(idle_s):
            for record in records:
                output.send(target, record.value, key=record.key)


if __name__ == "__main__":
    main(*sys.argv[1:])
