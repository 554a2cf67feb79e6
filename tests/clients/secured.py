"""Clients that log in over TLS: their settings, and the programs of those in other languages.

A job has an address, an authority, a login, a topic and values. The client creates the topic,
writes the values and reads them back.
"""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as KafkaPythonTopic
from kafka.net.sasl.oauth import AbstractTokenProvider

from clients.programs import HERE, go_program, node_program
from peers.java import source_command

WAIT_S = 20


@dataclass(frozen=True)
class Job:
    bootstrap: str
    ca: str
    mechanism: str
    topic: str
    username: str = ""
    password: str = ""
    token: str = ""
    values: tuple[str, ...] = ("one", "two", "three")


def program(command: Callable[[], list[str]]) -> Callable[[Job], list[str]]:
    """A client in another language; returns the lines that it prints."""

    def run(job: Job) -> list[str]:
        done = subprocess.run(
            [*command(), json.dumps(asdict(job))],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.splitlines()

    return run


def librdkafka_settings(job: Job) -> dict[str, Any]:
    settings = {
        "bootstrap.servers": job.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": job.ca,
        "sasl.mechanism": job.mechanism,
    }
    if job.mechanism == "OAUTHBEARER":
        return {**settings, "oauth_cb": lambda _: (job.token, time.time() + 300)}
    return {**settings, "sasl.username": job.username, "sasl.password": job.password}


def librdkafka(job: Job) -> list[str]:
    settings = librdkafka_settings(job)
    admin = AdminClient(settings)
    admin.poll(0)  # calls back for the token
    (created,) = admin.create_topics([NewTopic(job.topic, 1, 1)]).values()
    created.result(WAIT_S)
    producer = Producer(settings)
    for value in job.values:
        producer.produce(job.topic, value)
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer({**settings, "group.id": job.topic})
    consumer.assign([TopicPartition(job.topic, 0, 0)])
    found: list[str] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < len(job.values) and time.monotonic() < deadline:
        found += [(each.value() or b"").decode() for each in consumer.consume(10, 0.5)]
    consumer.close()
    return found


class _Token(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, value: str) -> None:
        self._value = value

    def token(self) -> str:
        return self._value


def kafka_python_settings(job: Job) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap_servers": job.bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": job.ca,
        "sasl_mechanism": job.mechanism,
    }
    if job.mechanism == "OAUTHBEARER":
        return {**settings, "sasl_oauth_token_provider": _Token(job.token)}
    return {
        **settings,
        "sasl_plain_username": job.username,
        "sasl_plain_password": job.password,
    }


def kafka_python(job: Job) -> list[str]:
    settings = kafka_python_settings(job)
    admin = KafkaAdminClient(**settings)
    admin.create_topics([KafkaPythonTopic(job.topic, 1, 1)])
    admin.close()
    producer = kafka.KafkaProducer(**settings)
    for value in job.values:
        producer.send(job.topic, value.encode()).get(WAIT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(**settings, consumer_timeout_ms=WAIT_S * 1000)
    partition = kafka.TopicPartition(job.topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    found = [next(consumer).value.decode() for _ in job.values]
    consumer.close()
    return found


SECURED = HERE / "secured"
franz_go = program(lambda: go_program("franz", SECURED))

CLIENTS: dict[str, Callable[[Job], list[str]]] = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "java": program(lambda: source_command("Secured", jars="kafka-4.3.1")),
    "franz-go": lambda job: franz_go(job)[1:],  # the first line is about ACLs and quotas
    "sarama": program(lambda: go_program("sarama", SECURED)),
    "kafkajs": program(lambda: node_program("kafkajs", "secured.js")),
}
