"""One metrics page for all workers."""

import asyncio
from http import HTTPStatus

from penstock.broker.startup.state_file import BrokerState, WorkerState
from penstock.http.message import HttpRequest, HttpResponse, plain
from penstock.http.server import serving
from penstock.local.workers.pages import asked, labelled, merged, own_lines, readiness

FIRST = """# HELP up Whether.
# TYPE up gauge
up 1
# HELP lag How far.
# TYPE lag histogram
lag_bucket{topic="a b",le="1"} 2
lag_sum{topic="a b"} 0.5
"""
SECOND = FIRST.replace(" 2\n", " 7\n")


def worker(index: int, http: str | None = None) -> WorkerState:
    return WorkerState(index, 100 + index, 1000 + index, {}, http, restarts=index)


def test_a_metric_of_all_workers_is_one_block_with_worker_labels() -> None:
    assert "".join(merged({"0": FIRST, "1": SECOND})) == (
        "# HELP up Whether.\n# TYPE up gauge\n"
        'up{worker="0"} 1\nup{worker="1"} 1\n'
        "# HELP lag How far.\n# TYPE lag histogram\n"
        'lag_bucket{worker="0",topic="a b",le="1"} 2\n'
        'lag_sum{worker="0",topic="a b"} 0.5\n'
        'lag_bucket{worker="1",topic="a b",le="1"} 7\n'
        'lag_sum{worker="1",topic="a b"} 0.5\n'
    )


def test_a_brace_in_a_label_value_does_not_end_the_labels() -> None:
    assert labelled("up 1", "0") == 'up{worker="0"} 1'
    assert labelled('a{t="x}{ y"} 1', "3") == 'a{worker="3",t="x}{ y"} 1'


def test_a_worker_that_does_not_answer_is_down() -> None:
    lines = "".join(own_lines([worker(0), worker(1)], {"0": FIRST}))
    assert 'penstock_worker_up{worker="0"} 1' in lines
    assert 'penstock_worker_up{worker="1"} 0' in lines
    assert 'penstock_worker_restarts_total{worker="1"} 1' in lines


def test_a_machine_is_ready_when_all_workers_are() -> None:
    workers = (worker(0), worker(1))
    state = BrokerState(1, "", 1, "c", "h:1", {}, None, workers)
    ok = (200, b"ready")
    assert readiness(state, dict.fromkeys(workers, ok)).status is HTTPStatus.OK
    some = readiness(state, {workers[0]: ok, workers[1]: (503, b"")})
    assert (some.status, some.body) == (
        HTTPStatus.SERVICE_UNAVAILABLE,
        plain(HTTPStatus.SERVICE_UNAVAILABLE, "not ready: worker 1").body,
    )


def test_only_workers_that_answer_over_http_are_up() -> None:
    def page(_: HttpRequest) -> HttpResponse:
        return plain(HTTPStatus.OK, "here")

    async def run() -> None:
        table = {("GET", "/metrics"): page}
        async with asyncio.TaskGroup() as tasks, serving(tasks, table) as bound:
            up = worker(0, f"{bound.host}:{bound.port}")
            answers = await asked([up, worker(1, "127.0.0.1:1"), worker(2)], "/metrics")
            assert {each.index: status for each, (status, _) in answers.items()} == {0: 200}

    asyncio.run(run())
