"""Exactly once into a database: the position is kept with the results, in one transaction of it.

Kafka's own transactions end where Kafka ends. With a store outside, keep the next offset of each
partition in that store, written together with what was made of the records, and start from there:
whenever the program dies, results and position still agree.

That takes care of records that are *read* twice. A record may also be *written* twice, by a program
that sends it again after it started anew; only its author can tell, so payments carry an id of
their own in the header `id`, and the table takes each id once.

    python examples/exactly_once_sqlite.py payments payments.db
"""

import argparse
import signal
import sqlite3
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

SCHEMA = """
create table if not exists payments (id text primary key, account text, cents integer);
create table if not exists positions (
    topic text, partition integer, next integer, primary key (topic, partition)
);
"""
RECORDS = 50
"""As many become one transaction of the database at most."""


def start_where_results_end(
    database: sqlite3.Connection, consumer: Consumer, assigned: list[TopicPartition]
) -> None:
    """The group shares the partitions out; where to start in them is the database's to say."""
    for part in assigned:
        asked = "select next from positions where topic = ? and partition = ?"
        row = database.execute(asked, (part.topic, part.partition)).fetchone()
        part.offset = row[0] if row else 0
    consumer.assign(assigned)


def store(database: sqlite3.Connection, messages: Sequence[Message]) -> None:
    payments = [payment(message) for message in messages]
    nexts = {
        (message.topic(), message.partition()): (message.offset() or 0) + 1 for message in messages
    }
    with database:  # one transaction: all of it, or nothing
        database.executemany("insert or ignore into payments values (?, ?, ?)", payments)
        database.executemany(
            "insert or replace into positions values (?, ?, ?)",
            [(*where, offset) for where, offset in nexts.items()],
        )


def payment(message: Message) -> tuple[str, str, int]:
    """Its id, the account in the key and the cents in the value."""
    headers = dict(message.headers() or [])
    identity, key, cents = headers.get("id"), message.key(), message.value()
    if not isinstance(identity, bytes) or key is None or cents is None or not cents.isdigit():
        raise ValueError(
            f"{message.topic()}-{message.partition()} at {message.offset()} is no payment: it must"
            " have a header `id`, an account as key and a number of cents as value"
        )
    return identity.decode(), key.decode(), int(cents)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("topic")
    parser.add_argument("database", type=Path)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

    database = sqlite3.connect(args.database)
    database.executescript(SCHEMA)
    consumer = Consumer(
        {
            "bootstrap.servers": args.bootstrap,
            "group.id": "payments-into-sqlite",
            "group.instance.id": "sqlite-1",  # whoever starts next takes its place at once
            "enable.auto.commit": False,  # the position is in the database
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([args.topic], on_assign=partial(start_where_results_end, database))
    try:
        while True:
            messages = consumer.consume(RECORDS, 0.2)
            for error in filter(None, (message.error() for message in messages)):
                raise KafkaException(error)
            if messages:
                store(database, messages)
    except (KafkaException, ValueError, sqlite3.Error) as failed:
        print(f"exactly_once_sqlite: {failed}", file=sys.stderr)
        return 1
    finally:
        consumer.close()
        database.close()


if __name__ == "__main__":
    sys.exit(main())
