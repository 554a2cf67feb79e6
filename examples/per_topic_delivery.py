"""Two guarantees in one program: readings that may be lost, payments that may not.

A guarantee belongs to a producer, not to a program, so this one has two of them. The same in Go,
with sarama, is in `per_topic_delivery/`. `exactly_once_sqlite.py` reads the payments: each has an
account as key, cents as value, and an id of its own as a header.

    python examples/per_topic_delivery.py 127.0.0.1:9092 readings payments 1000
"""

import sys
import time

from confluent_kafka import KafkaError, Message, Producer

PAUSE_S = 0.001
ACCOUNTS = 7

READINGS = {
    "acks": 0,  # no answer is awaited
    "retries": 0,  # and nothing is sent again
}
PAYMENTS = {
    "acks": "all",  # every in-sync replica has it
    "enable.idempotence": True,  # what is sent again is numbered, so that the broker has it once
    "delivery.timeout.ms": 60_000,  # until then it is sent again
}


def main(bootstrap: str, loose: str, strict: str, count: int) -> int:
    forgetful = Producer({"bootstrap.servers": bootstrap, "log_level": 0, **READINGS})
    careful = Producer({"bootstrap.servers": bootstrap, "log_level": 0, **PAYMENTS})
    acknowledged: list[Message] = []
    lost: list[KafkaError] = []

    def reported(error: KafkaError | None, payment: Message) -> None:
        if error is None:
            acknowledged.append(payment)
        else:
            lost.append(error)

    for number in range(count):
        forgetful.produce(loose, f"reading {number}")
        careful.produce(
            strict,
            f"{number}",  # cents
            f"account {number % ACCOUNTS}",
            headers={"id": f"payment {number}".encode()},
            on_delivery=reported,
        )
        forgetful.poll(0)
        careful.poll(0)
        time.sleep(PAUSE_S)
    forgetful.flush(10)
    careful.flush(60)
    if lost or len(acknowledged) < count:
        print(f"{count - len(acknowledged)} payments are not acknowledged: {lost}", file=sys.stderr)
        return 1
    print(f"{count} readings sent, {len(acknowledged)} payments acknowledged")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 5 or not sys.argv[4].isdecimal():
        sys.exit("usage: per_topic_delivery.py BOOTSTRAP READINGS-TOPIC PAYMENTS-TOPIC COUNT")
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
