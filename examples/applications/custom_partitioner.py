"""A partitioner of one's own: large customers have partition 0 for themselves.

python examples/applications/custom_partitioner.py 127.0.0.1:9092 orders acme small-1 small-2
"""

import sys

from penstock.sdk import STRING, Producer
from penstock.sdk.partitioner import by_key

LARGE = {b"acme", b"globex"}


def by_size(topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
    if key in LARGE or partitions == 1:
        return 0
    return 1 + by_key(topic, key, value, partitions - 1)


def main(bootstrap: str, topic: str, *customers: str) -> dict[str, int]:
    config = {"bootstrap.servers": bootstrap}
    with Producer(config, key=STRING, value=STRING, partitioner=by_size) as producer:
        sent = {each: producer.send(topic, "an order", key=each) for each in customers}
        return {each: delivery.result().partition for each, delivery in sent.items()}


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
