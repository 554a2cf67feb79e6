"""The machine's HTTP pages, merged from the pages of all workers.

The addresses of the workers come from `broker.json`, which the supervisor keeps up to date.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path

from penstock.broker.startup.state_file import BrokerState, WorkerState, read_state
from penstock.http.health import healthz
from penstock.http.message import HttpRequest, HttpResponse, plain
from penstock.http.prometheus import CONTENT_TYPE
from penstock.http.server import Handler

TIMEOUT_S = 5.0


def pages(directory: Path) -> dict[tuple[str, str], Handler]:
    async def metrics(_: HttpRequest) -> HttpResponse:
        state = read_state(directory)
        workers = () if state is None else state.workers
        answers = await asked(workers, "/metrics")
        texts = {
            str(each.index): body.decode()
            for each, (status, body) in answers.items()
            if status == HTTPStatus.OK
        }
        lines = [*own_lines(workers, texts), *merged(texts)]
        return HttpResponse(content_type=CONTENT_TYPE, body="".join(lines).encode())

    async def readyz(_: HttpRequest) -> HttpResponse:
        state = read_state(directory)
        if state is None:
            return plain(HTTPStatus.SERVICE_UNAVAILABLE, "the workers are starting")
        return readiness(state, await asked(state.workers, "/readyz"))

    return {("GET", "/healthz"): healthz, ("GET", "/readyz"): readyz, ("GET", "/metrics"): metrics}


def readiness(state: BrokerState, answers: Mapping[WorkerState, tuple[int, bytes]]) -> HttpResponse:
    down = [
        f"worker {each.index}"
        for each in state.workers
        if answers.get(each, (0, b""))[0] != HTTPStatus.OK
    ]
    if down:
        return plain(HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: {', '.join(down)}")
    return plain(HTTPStatus.OK, "ready")


def own_lines(workers: Iterable[WorkerState], answered: Mapping[str, str]) -> Iterator[str]:
    """Metrics about the workers that they cannot report themselves."""
    known = list(workers)
    yield "# HELP penstock_worker_up Whether the worker answers.\n"
    yield "# TYPE penstock_worker_up gauge\n"
    for each in known:
        yield f'penstock_worker_up{{worker="{each.index}"}} {int(str(each.index) in answered)}\n'
    yield "# HELP penstock_worker_restarts_total How often the worker was started again.\n"
    yield "# TYPE penstock_worker_restarts_total counter\n"
    for each in known:
        yield f'penstock_worker_restarts_total{{worker="{each.index}"}} {each.restarts}\n'


def merged(texts: Mapping[str, str]) -> Iterator[str]:
    """The metrics of all workers, each with the label `worker`. The lines of a metric are together,
    as the format requires.
    """
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for worker, text in texts.items():
        name = ""
        for line in text.splitlines():
            if line.startswith("# "):
                _, kind, found, *_ = line.split(" ", 3)
                if kind == "HELP":
                    name = found
                if len(heads.setdefault(name, [])) < 2:
                    heads[name].append(f"{line}\n")
            elif line:
                samples.setdefault(name, []).append(f"{labelled(line, worker)}\n")
    for name, head in heads.items():
        yield from head
        yield from samples.get(name, ())


def labelled(line: str, worker: str) -> str:
    """The sample line with one more label, before the others."""
    name, brace, rest = line.partition("{")
    if brace and " " not in name:
        return f'{name}{{worker="{worker}",{rest}'
    name, _, value = line.partition(" ")
    return f'{name}{{worker="{worker}"}} {value}'


async def asked(workers: Iterable[WorkerState], path: str) -> dict[WorkerState, tuple[int, bytes]]:
    """The status and body of each worker's response; workers that do not answer are left out."""
    found: dict[WorkerState, tuple[int, bytes]] = {}

    async def ask(worker: WorkerState, address: str) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                found[worker] = await get(address, path)
        except (OSError, TimeoutError, ValueError):
            return

    async with asyncio.TaskGroup() as tasks:
        for each in workers:
            if each.http is not None:
                tasks.create_task(ask(each, each.http))
    return {each: found[each] for each in workers if each in found}


async def get(address: str, path: str) -> tuple[int, bytes]:
    """GET by HTTP 1.0, so that the body ends with the connection."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    try:
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return int(head.split(b" ", 2)[1]), body
