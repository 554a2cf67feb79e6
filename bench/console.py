"""The console of a large cluster: python -m bench console [--topics N] [--groups N]

The broker has 2,000 topics and 5,000 groups, a third of which lag. Measured are the time of list
pages, the age of the console's last snapshot at any moment, and the time until a browser that
follows a topic gets a new record.
"""

import argparse
import asyncio
import http.client
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import quantiles

from bench.process import cpu_s, resident_mb
from bench.subject import Penstock
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from peers.process import wait_until
from penstock.client.address import Address
from penstock.client.cluster import Client
from penstock.client.groups import alter_committed
from penstock.types import Offset, TopicPartition

LISTS = (
    "/topics",
    "/topics?sort=-lag&page=7",
    "/groups",
    "/groups?sort=-lag_seconds&page=9",
    "/api/v1/topics",
    "/api/v1/groups",
    "/",
)
RECORDS = 3
AT_ONCE = 4
AIM_LIST_S, AIM_TAIL_MS = 1.0, 300


def fill(port: int, topics: int, groups: int) -> None:
    servers: dict[str, str | int | float | bool] = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "log_level": 0,
    }
    admin = AdminClient(servers)
    names = [f"topic-{number:05}" for number in range(topics)]
    wanted = [*names, "followed"]
    for start in range(0, len(wanted), 200):
        some = [NewTopic(each, 1, 1) for each in wanted[start : start + 200]]
        for made in admin.create_topics(some).values():
            made.result(60)
    producer = Producer({**servers, "linger.ms": 50})
    for name in names:
        for _ in range(RECORDS):
            producer.produce(name, b"x" * 100)
    if producer.flush(120):
        sys.exit("bench: not all records were written in two minutes")
    asyncio.run(commit(port, names, groups))


async def commit(port: int, names: list[str], groups: int) -> None:
    numbers = iter(range(groups))

    async def work(client: Client) -> None:
        for number in numbers:
            places = (names[number % len(names)], names[(number * 7 + 1) % len(names)])
            offset = Offset(RECORDS if number % 3 else 1)
            offsets = {TopicPartition(each, 0): offset for each in places}
            await alter_committed(client, f"group-{number:05}", offsets)

    async with Client([Address("127.0.0.1", port)]) as client, asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work(client))


@contextmanager
def console(port: int) -> Iterator[tuple[str, int]]:
    """Yields the console's URL and pid once it has its first snapshot of the cluster."""
    command = [sys.executable, "-m", "penstock", "console", "--listen", "127.0.0.1:0"]
    command += ["--bootstrap-server", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"ready (http://\S+)", process.stdout.readline())
        if found is None:
            sys.exit("bench: the console does not start")
        began_s = time.monotonic()
        wait_until(lambda: status(f"{found[1]}/api/v1/cluster") == 200, 120, "the first look")
        print(f"{'the first look':40} {time.monotonic() - began_s:6.2f} s", flush=True)
        yield found[1], process.pid
        process.terminate()


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            response.read()
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def timed_s(work: Callable[[], object], times: int) -> list[float]:
    found = []
    for _ in range(times):
        began_s = time.monotonic()
        work()
        found.append(time.monotonic() - began_s)
    return found


def p95(values: list[float]) -> float:
    return quantiles(values, n=20)[-1]


def ages_s(url: str, seconds: float) -> list[float]:
    """Ages of the console's last snapshot, sampled five times a second."""
    found, end_s = [], time.monotonic() + seconds
    while time.monotonic() < end_s:
        with urllib.request.urlopen(f"{url}/api/v1/cluster", timeout=60) as response:
            found.append(time.time() - json.load(response)["at_ms"] / 1000)
        time.sleep(0.2)
    return found


def tail_ms(url: str, port: int, times: int) -> list[float]:
    """Milliseconds from a produce call until its event arrives."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    connection.request("GET", "/api/v1/topics/followed/tail")
    response = connection.getresponse()
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "linger.ms": 0, "log_level": 0})
    found = []
    for number in range(times + 1):
        mark = f"mark {number}."
        began_s = time.monotonic()
        producer.produce("followed", mark)
        producer.flush(10)
        while mark.encode() not in response.readline():
            pass
        found.append(1000 * (time.monotonic() - began_s))
    connection.close()
    return found[1:]  # the first one includes the topic lookup


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench console")
    parser.add_argument("--topics", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=5000)
    parser.add_argument("--times", type=int, default=40, help="each list is asked for")
    parser.add_argument("--seconds", type=float, default=40, help="to see how old looks become")
    given = parser.parse_args(argv)
    with ExitStack() as stack:
        broker = Penstock(stack)
        fill(broker.port, given.topics, given.groups)
        url, pid = stack.enter_context(console(broker.port))
        print(f"aim: lists within {AIM_LIST_S:g} s, the tail within {AIM_TAIL_MS} ms, p95")
        for path in LISTS:
            found = timed_s(lambda path=path: status(url + path), given.times)  # type: ignore[misc]
            print(f"{path:40} {p95(found):6.2f} s p95", flush=True)
        tail = tail_ms(url, broker.port, 100)
        print(f"{'a record to who follows':40} {p95(tail):6.0f} ms p95", flush=True)
        before = cpu_s(broker.pids), cpu_s([pid])
        ages = ages_s(url, given.seconds)
        of_broker, of_console = (cpu_s(broker.pids) - before[0], cpu_s([pid]) - before[1])
        print(f"{'age of a look':40} {p95(ages):6.1f} s p95, {max(ages):.1f} s at most")
        shares = [100 * each / given.seconds for each in (of_broker, of_console)]
        print(f"{'CPU: broker, console':40} {shares[0]:6.0f} %, {shares[1]:.0f} % of a core")
        print(f"{'memory of the console':40} {resident_mb([pid]):6.0f} MB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
