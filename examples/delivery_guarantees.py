"""At most once, at least once, exactly once: the same copy of a topic, three ways.

What tells them apart is the order of two steps, writing the result and committing the position,
and what happens when the program dies between them. `--crash-at N` dies there, as by kill -9, with
the N-th record; run it again without to see what the next start makes of it.

    python examples/delivery_guarantees.py at-least-once events copies --crash-at 5
    python examples/delivery_guarantees.py at-least-once events copies
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

WAIT_S = 30
Crash = Callable[[], None]


def at_most_once(message: Message, target: str, to: Producer, by: Consumer, crash: Crash) -> None:
    """First the position, then the result: a record that was begun is never begun again."""
    by.commit(message=message, asynchronous=False)
    crash()
    write(message, target, to)


def at_least_once(message: Message, target: str, to: Producer, by: Consumer, crash: Crash) -> None:
    """First the result, then the position: a record is begun again until its result is there."""
    write(message, target, to)
    crash()
    by.commit(message=message, asynchronous=False)


def exactly_once(message: Message, target: str, to: Producer, by: Consumer, crash: Crash) -> None:
    """Both in one transaction: readers with `isolation.level=read_committed` see both or none."""
    to.begin_transaction()
    write(message, target, to)
    to.send_offsets_to_transaction(after(message), by.consumer_group_metadata(), WAIT_S)
    crash()
    to.commit_transaction(WAIT_S)


GUARANTEES = {
    "at-most-once": at_most_once,
    "at-least-once": at_least_once,
    "exactly-once": exactly_once,
}


def write(message: Message, target: str, to: Producer) -> None:
    """The result stands for any work: here, the value in capitals."""
    refused: list[KafkaError] = []

    def reported(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(error)

    to.produce(target, (message.value() or b"").upper(), message.key(), on_delivery=reported)
    if to.flush(WAIT_S) or refused:
        raise KafkaException(*refused)


def after(message: Message) -> list[TopicPartition]:
    where = message.topic() or "", message.partition() or 0
    return [TopicPartition(*where, (message.offset() or 0) + 1)]


def copy_all(args: argparse.Namespace) -> int:
    """Copy until the end of every assigned partition; how many records that was."""
    consumer = Consumer(
        {
            "bootstrap.servers": args.bootstrap,
            "group.id": group(args),
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "group.instance.id": "copier-1",  # whoever starts next takes its place at once
        }
    )
    producer = Producer({"bootstrap.servers": args.bootstrap, **producing(args)})
    if args.guarantee == "exactly-once":
        # Aborts what a former run of this program left open, and shuts it out if it still lives.
        producer.init_transactions(WAIT_S)
    consumer.subscribe([args.source])
    step = partial(GUARANTEES[args.guarantee], target=args.target, to=producer, by=consumer)
    count, ended = 0, set[tuple[str | None, int | None]]()
    while not ended or len(ended) < len(consumer.assignment()):
        message = consumer.poll(1)
        if message is None:
            continue
        error = message.error()
        if error is None:
            count += 1
            step(message, crash=partial(die, here=count == args.crash_at))
        elif error.code() == KafkaError._PARTITION_EOF:
            ended.add((message.topic(), message.partition()))
        else:
            raise KafkaException(error)
    consumer.close()
    return count


def group(args: argparse.Namespace) -> str:
    """One for each guarantee: else what one copied would be done for the others."""
    return args.group or f"copiers-{args.guarantee}"


def producing(args: argparse.Namespace) -> dict[str, str | bool]:
    if args.guarantee == "exactly-once":
        return {"transactional.id": f"{group(args)}-copier"}
    return {"enable.idempotence": True}


def die(*, here: bool) -> None:
    if here:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("guarantee", choices=GUARANTEES)
    parser.add_argument("source", help="topic to read")
    parser.add_argument("target", help="topic to write")
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--group", help="[copiers-GUARANTEE]")
    parser.add_argument("--crash-at", type=int, metavar="N", help="die between both steps")
    try:
        print(f"{copy_all(parser.parse_args())} records copied")
    except KafkaException as failed:
        print(f"delivery_guarantees: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
