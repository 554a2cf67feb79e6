"""How soon a Kafka Streams application works: python -m bench streams [options]

Milliseconds from the start of its threads to its first record, for one member with one thread and a
store, in either protocol, beside Kafka with its default settings. The first application of a JVM
also loads its classes; the median is of all.
"""

import argparse
from contextlib import ExitStack
from statistics import median

from bench.subject import Kafka, Penstock, Subject
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from peers import java

TOPIC, JARS = "lines", "streams-4.3.1"
AIM_MS = 500
PROTOCOLS = ("streams", "classic")


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench streams", description=__doc__)
    parser.add_argument("--applications", type=int, default=5)
    parser.add_argument("--jars", default=JARS)
    options = parser.parse_args(argv)
    for subject in (Penstock, Kafka):
        with ExitStack() as stack:
            broker: Subject = subject(stack)
            bootstrap = f"127.0.0.1:{broker.port}"
            fill(bootstrap)
            for protocol in PROTOCOLS:
                waits = first_records_ms(bootstrap, protocol, options.applications, options.jars)
                aim = f"  (aim <= {AIM_MS})" if protocol == "streams" else ""
                shown = ", ".join(map(str, waits))
                print(f"{broker.name:9} {protocol:8} {median(waits):6.0f} ms{aim}  [{shown}]")


def fill(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    producer.produce(TOPIC, b"value", b"key")
    assert producer.flush(30) == 0


def first_records_ms(bootstrap: str, protocol: str, applications: int, jars: str) -> list[int]:
    given = {
        "bootstrap.servers": bootstrap,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "statestore.cache.max.bytes": "0",
    }
    pairs = [f"{name}={value}" for name, value in given.items()]
    reported = java.run("FirstRecord", TOPIC, str(applications), *pairs, jars=jars, timeout_s=300)
    return [int(line) for line in reported.split()]
