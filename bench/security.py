"""What protection costs: python -m bench security [options]

TLS: the broker's CPU for each GB that librdkafka writes and reads, beside Kafka's. ACLs and quotas:
what they add to a small request. Hostile clients: how long an honest client waits beside a thousand
connections that never finish a request, and beside 500 failing logins a second.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from bench.interpreter import about
from bench.process import cpu_s
from bench.report import Report, is_missed
from bench.stalls import waits_ms
from bench.topic import ask, topic
from confluent_kafka import Consumer, Producer, TopicPartition

from peers.kafka import KafkaCluster
from peers.penstock import PenstockBroker
from peers.process import free_ports
from penstock.broker.authorization.guarded import guarded
from penstock.broker.context import Context, Peer
from penstock.broker.net.dispatch import Dispatch, Request
from penstock.broker.net.routes import Routes
from penstock.clock import SystemClock
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.record import Record
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.apis import APIS
from penstock.wire.frame import RequestHeader
from penstock.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from penstock.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.security.certificates import KeyFiles, certified

RECORD = bytes(range(250)) * 4
TLS_AIM = {"CPU s per GB": "<= 0.8"}
COST_AIM_US, WAIT_AIM = "<= 2", "<= 1.5"
"""Aims for the cost of ACLs and quotas in a small request, and for an honest client's wait beside
hostile ones, divided by its wait alone.
"""
Figures = list[tuple[str, float, str]]
"""Name, value, and aim (a sign and a number)."""
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PRODUCE, CREATE_ACLS, ALTER_CLIENT_QUOTAS = 0, 30, 49
ALONE = "alone"
ELSEWHERE = "beside 500 failing logins a second at another broker"
ONE, NONE = [Record(0, 0, None, bytes(100), [])], Codec.NONE


class Secured(NamedTuple):
    """A broker with a plain listener and one with TLS."""

    name: str
    pids: list[int]
    plain: int
    tls: int


def tls_settings(keys: KeyFiles) -> dict[str, str]:
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(keys.store)}


def penstock(stack: ExitStack, folder: Path, settings: Mapping[str, str]) -> PenstockBroker:
    given = [f"--set={name}={text}" for name, text in settings.items()]
    return stack.enter_context(PenstockBroker(*given, folder=folder, timeout_s=60))


def ours(stack: ExitStack, folder: Path, keys: KeyFiles) -> Secured:
    plain, tls = free_ports(2)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{tls}"
    settings = {**tls_settings(keys), "listeners": listeners}
    broker = penstock(stack, folder / "penstock", settings)
    return Secured("Penstock", list(broker.pids.values()), plain, tls)


def kafkas(stack: ExitStack, folder: Path, keys: KeyFiles) -> Secured:
    settings: dict[str, object] = dict(tls_settings(keys))
    cluster = KafkaCluster(profile="bench", settings=settings, folder=folder / "kafka")
    (tls,) = free_ports(1)
    plain = cluster.port(0)
    clients = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{tls}"
    controller = f"CONTROLLER://127.0.0.1:{cluster._controller_ports[0]}"
    settings["listeners"] = f"{clients},{controller}"
    settings["advertised.listeners"] = clients
    settings["listener.security.protocol.map"] = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL"
    stack.enter_context(cluster)
    return Secured("Kafka", list(cluster.pids.values()), plain, tls)


def client(port: int, keys: KeyFiles | None) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap.servers": f"127.0.0.1:{port}"}
    if keys is not None:
        settings |= {"security.protocol": "SSL", "ssl.ca.location": str(keys.certificate)}
    return settings


def write(settings: Mapping[str, Any], name: str, size_mb: int) -> None:
    producer = Producer({**settings, "batch.size": 1_000_000, "linger.ms": 50, "acks": 1})
    for _ in range(size_mb * 1000):
        while True:
            try:
                producer.produce(name, RECORD, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(60):
        raise TimeoutError("records were not delivered")


def read(settings: Mapping[str, Any], name: str, size_mb: int) -> None:
    consumer = Consumer({**settings, "group.id": name, "fetch.message.max.bytes": 4 << 20})
    consumer.assign([TopicPartition(name, 0, 0)])
    left = size_mb * 1000
    while left > 0:
        left -= len(consumer.consume(10_000, 1.0))
    consumer.close()


def measure_tls(subject: Secured, keys: KeyFiles, size_mb: int, report: Report) -> None:
    for way, port, trusted in (("TLS", subject.tls, keys), ("plain", subject.plain, None)):
        settings = client(port, trusted)
        with topic(subject.plain, f"bench-{way}-{time.monotonic_ns()}") as name:
            for work in (write, read):
                spent_s, began_s = cpu_s(subject.pids), time.perf_counter()
                work(settings, name, size_mb)
                took_s = time.perf_counter() - began_s
                figures = {
                    "CPU s per GB": (cpu_s(subject.pids) - spent_s) * 1000 / size_mb,
                    "MB/s": size_mb / took_s,
                }
                what = "produce" if work is write else "fetch"
                report.add(f"{what} by {way}", subject.name, figures, TLS_AIM)


def protect(port: int) -> None:
    """Adds an ACL and a quota that every small request is checked against and none exceeds."""
    allow_all = AclCreation(2, "small", 4, "User:ANONYMOUS", "*", 2, 3)
    acls = ask(port, CREATE_ACLS, 3, CreateAclsRequest([allow_all]), CreateAclsResponse)
    assert [each.error_code for each in acls.results] == [0]
    limits = [OpData("producer_byte_rate", 1e12), OpData("request_percentage", 1e6)]
    entry = EntryData([EntityData("user", "ANONYMOUS")], limits)
    request = AlterClientQuotasRequest([entry])
    quotas = ask(port, ALTER_CLIENT_QUOTAS, 1, request, AlterClientQuotasResponse)
    assert [each.error_code for each in quotas.entries] == [0]


def least_us(call: Callable[[], object]) -> float:
    """The fastest time of a call, in microseconds.

    Tried for a second or so: a busy neighbour of a core halves the speed for tenths of a second.
    """
    return min(timeit.repeat(call, number=500, repeat=2000)) * 2000


def measure_protection() -> Figures:
    """What ACLs and quotas add to a produce request with one record.

    Measured in this process: two runs of a broker differ by more than that.
    """
    checked = {"authorizer.class.name": AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
    with EmbeddedBroker(settings=checked) as broker:
        protect(int(broker.bootstrap.rpartition(":")[2]))
        services = broker.running.services
        time.sleep(1.5)  # until the ACL and the quota are in effect
        header = RequestHeader(APIS[PRODUCE], 9, 1, "bench")
        peer = Peer("PLAINTEXT", "127.0.0.1", 1)
        answer = ProduceResponse()
        part = PartitionProduceData(
            index=0, records=memoryview(bytes(build_batch(ONE, codec=NONE)))
        )
        data = [TopicProduceData(name="small", partition_data=[part])]
        message = ProduceRequest(acks=1, timeout_ms=1000, topic_data=data)
        context = Context(header, 9, peer, 0, services)

        def handler(_request: Any, _ctx: Context) -> ProduceResponse:
            return answer

        guard = guarded({PRODUCE: handler})[PRODUCE]
        assert guard(message, context) is answer
        routes = Routes({PRODUCE: handler})
        dispatch = Dispatch(routes, services, SystemClock(), peer)
        request = Request(header, routes.find(header), message, time.perf_counter_ns(), 200)
        request.spent_ns = 10_000
        assert dispatch.quotas.is_on
        acls_us = least_us(lambda: guard(message, context))
        quotas_us = least_us(lambda: dispatch.charge(request, answer))
        plain_us = least_us(lambda: handler(message, context))
        acls_us, quotas_us = acls_us - plain_us, quotas_us - plain_us
        small = "a produce request with one record, "
        return [
            (small + "us by ACLs", acls_us, ""),
            (small + "us by quotas", quotas_us, ""),
            (small + "us by both", acls_us + quotas_us, COST_AIM_US),
        ]


@contextmanager
def hostile(port: int, what: str, count: int) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.hostile", str(port), what, str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def measure_hostile(folder: Path, rounds: int, seconds: float) -> Figures:
    """Waits beside hostile clients, each divided by the wait alone in the same round; medians.

    Hostile clients use CPU on the same machine, too: logins that fail at another broker show how
    much of a wait is due to that.
    """
    waited: dict[str, list[float]] = {}
    plain, sasl, other_plain, other_sasl = free_ports(4)
    with ExitStack() as stack:
        for at, (own, login) in enumerate(((plain, sasl), (other_plain, other_sasl))):
            settings = {
                "listeners": f"PLAINTEXT://127.0.0.1:{own},SASL_PLAINTEXT://127.0.0.1:{login}",
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            }
            penstock(stack, folder / f"hostile-{at}", settings)
        for _ in range(rounds):
            for name, what, count, port in (
                (ALONE, "", 0, 0),
                ("beside 1,000 requests that never end", "loris", 1000, sasl),
                (ELSEWHERE, "logins", 500, other_sasl),
                ("beside 500 failing logins a second", "logins", 500, sasl),
            ):
                with hostile(port, what, count) if what else ExitStack():
                    waits = waits_ms(plain, seconds)
                p99_ms = quantiles(waits, n=100, method="inclusive")[98]
                waited.setdefault(name, []).append(p99_ms)
    figures: Figures = []
    for name, p99s_ms in waited.items():
        figures.append((f"an honest client {name}, p99 ms", median(p99s_ms), ""))
        if name != ALONE:
            times = [each / alone for each, alone in zip(p99s_ms, waited[ALONE], strict=True)]
            aim = "" if name == ELSEWHERE else WAIT_AIM
            figures.append((f"an honest client {name}, p99 by alone", median(times), aim))
    return figures


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench security")
    parser.add_argument("--only", choices=("kafka", "penstock"), help="run one broker alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--mb", type=int, default=300, help="written and read in each round")
    parser.add_argument("--out", type=Path, help="write the figures here too, as JSON")
    args = parser.parse_args(argv)
    described, tls, costs = about(), Report(), Figures()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as made:
        folder = Path(made)
        keys = certified(folder, "broker")
        with ExitStack() as stack:
            subjects = [
                make(stack, folder, keys)
                for make, name in ((ours, "penstock"), (kafkas, "kafka"))
                if args.only in (None, name)
            ]
            for subject in subjects:
                measure_tls(subject, keys, max(args.mb // 4, 1), Report())  # warms up
            for _ in range(args.rounds):
                for subject in subjects:
                    measure_tls(subject, keys, args.mb, tls)
        print(tls.text(), flush=True)
        if args.only != "kafka":
            costs = measure_protection() + measure_hostile(folder, args.rounds, args.seconds)
            for figure, value, aim in costs:
                missed = ", missed" if is_missed(value, aim) else ""
                print(f"{figure}: {value:,.2f}" + (f" (aim: {aim}{missed})" if aim else ""))
    if args.out:
        figures = {
            "about": described,
            "rounds": args.rounds,
            "tls": tls.jsonable(),
            "figures": costs,
        }
        args.out.write_text(json.dumps(figures, indent=1) + "\n")
