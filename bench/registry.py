"""Figures of the schema registry: python -m bench registry [--schemas N] [--rounds N] [--out FILE]

Lookups in a registry process with many schemas, over one connection, beside a request that costs
nothing: its time is the machine's share. And the decoding of Avro values with schema ids beside
plain Avro, in rows per second of one core.
"""

import argparse
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles

import pyarrow as pa
from bench.interpreter import about
from bench.process import cpu_s
from bench.report import is_missed
from fastavro import parse_schema, schemaless_writer

from penstock.spark.avro.schema import record_type
from penstock.spark.avro.values import decoder as plain_decoder
from penstock.spark.confluent.values import decoder, reader_schema
from penstock.testing.broker import EmbeddedBroker

AIM = "<= 5"
DECODING_AIM = ">= 0.8"
Figure = tuple[str, float, str]
"""Name, value and aim."""
HEADERS = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
NOTHING = "a request that costs nothing"
TURNS = 10
ROWS = 20_000
ROW = {"id": 7, "customer": "somebody", "price": 9.5, "note": "x" * 40}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "price", "type": "double"},
        {"name": "note", "type": "string"},
    ],
}


class Caller:
    """A client that keeps its connection open."""

    def __init__(self, address: str) -> None:
        self._connection = HTTPConnection(address)

    def ask(self, method: str, path: str, body: object = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        self._connection.request(method, path, data, HEADERS)
        answer = self._connection.getresponse()
        found = answer.read()
        assert answer.status == 200, found
        return found


def schema(number: int) -> dict[str, str]:
    fields = [{"name": f"field{each}", "type": "string"} for each in range(10)]
    node = {"type": "record", "name": f"Record{number}", "namespace": "bench", "fields": fields}
    return {"schema": json.dumps(node, separators=(",", ":"))}


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench registry")
    parser.add_argument("--schemas", type=int, default=5_000)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5, help="of decoding")
    parser.add_argument("--out", type=Path, help="also write the figures to this file, as JSON")
    given = parser.parse_args(argv)
    described, found = about(), list[Figure]()
    with EmbeddedBroker(settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        command = ["registry", "serve", "--bootstrap-server", broker.bootstrap]
        with subprocess.Popen(
            [sys.executable, "-m", "penstock", *command, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                address = process.stdout.readline().split()[1]
                for figure, value, aim in measured(address, process.pid, given):
                    missed = ", missed" if is_missed(value, aim) else ""
                    print(f"{figure}: {value:,.2f}" + (f" (aim: {aim}{missed})" if aim else ""))
                    found.append((figure, value, aim))
            finally:
                process.terminate()
    if given.out:
        figures = {"about": described, "rounds": given.rounds, "figures": found}
        given.out.write_text(json.dumps(figures, indent=1) + "\n")


def measured(address: str, pid: int, given: argparse.Namespace) -> Iterator[Figure]:
    caller, schemas = Caller(address), given.schemas
    began_s = time.perf_counter()
    for number in range(schemas):
        caller.ask("POST", f"/subjects/s{number}-value/versions", schema(number))
    yield (
        f"register each of {schemas:,} schemas, ms",
        1000 * (time.perf_counter() - began_s) / schemas,
        "",
    )
    asked: dict[str, Callable[[int], bytes]] = {
        NOTHING: lambda _: caller.ask("GET", "/healthz"),
        "schema by id": lambda n: caller.ask("GET", f"/schemas/ids/{n % schemas + 1}"),
        "latest version": lambda n: caller.ask(
            "GET", f"/subjects/s{n % schemas}-value/versions/latest"
        ),
        "id of a schema": lambda n: caller.ask(
            "POST", f"/subjects/s{n % schemas}-value", schema(n % schemas)
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in asked}
    spent_s = dict.fromkeys(asked, 0.0)
    # In turns, so that other work on the machine disturbs all of them alike.
    for turn in range(TURNS):
        share = given.requests // TURNS
        for name, ask in asked.items():
            before_s = cpu_s([pid])
            for number in range(turn * share, (turn + 1) * share):
                began_s = time.perf_counter()
                ask(number)
                times[name].append(1000 * (time.perf_counter() - began_s))
            spent_s[name] += cpu_s([pid]) - before_s
    for name, taken in times.items():
        cuts = quantiles(taken, n=1000)
        yield f"{name}, p50 ms", cuts[499], ""
        yield f"{name}, p99 ms", cuts[989], AIM if name != NOTHING else ""
        yield f"{name}, p99.9 ms", cuts[998], ""
        yield f"{name}, CPU ms of the registry", 1000 * spent_s[name] / len(taken), ""
    yield from decoding(f"http://{address}", caller, given.rounds)


def decoding(url: str, caller: Caller, rounds: int) -> Iterator[Figure]:
    text = json.dumps(ORDER)
    made = json.loads(caller.ask("POST", "/subjects/orders-value/versions", {"schema": text}))
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(ORDER), ROW)
    plain = pa.array([out.getvalue()] * ROWS, pa.binary())
    prefix = b"\x00" + made["id"].to_bytes(4)
    framed = pa.array([prefix + out.getvalue()] * ROWS, pa.binary())
    by_plain = plain_decoder(record_type(text))
    columns = reader_schema("confluent-avro", url, "orders-value")
    by_id = decoder("confluent-avro", columns, url)
    assert by_plain(plain).equals(by_id(framed))
    pairs = ((by_plain, plain), (by_id, framed))
    taken: tuple[list[float], ...] = ([], [])
    for _ in range(5 * rounds):
        for at, (decode, values) in enumerate(pairs):
            began_s = time.process_time()
            decode(values)
            taken[at].append(time.process_time() - began_s)
    rates = [ROWS / median(each) for each in taken]
    yield "plain Avro, rows/s of a core", rates[0], ""
    yield "Avro with schema ids, rows/s of a core", rates[1], ""
    yield "Avro with schema ids by plain", rates[1] / rates[0], DECODING_AIM
