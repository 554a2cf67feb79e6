"""Producing records over HTTP, with a broker's own service."""

import asyncio
import http.client
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from peers.penstock import PenstockBroker
from peers.process import free_ports
from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.client.produce import Acks
from penstock.client.record_sender import ProducerRecord
from penstock.http.message import HttpRequest
from penstock.rest.body import JSON_BATCH, NDJSON
from penstock.rest.sender import RestSender, TooMuchWaits
from penstock.rest.service import RestService, RestSettings, running_rest
from penstock.testing.broker import EmbeddedBroker
from support.records.reading import all_records
from support.sdk.waiting import wait_until

SECRET = "s3cret"


async def asked(
    service: RestService, path: str, body: bytes = b"v", method: str = "POST", **headers: str
) -> tuple[int, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    route, _, query = path.partition("?")
    found = await service.answer(
        HttpRequest(method, route, query, {"host": "127.0.0.1", **named}, body=body)
    )
    assert isinstance(found.body, bytes)
    return found.status.value, json.loads(found.body)


def test_records_are_written_and_refusals_have_their_status(broker: EmbeddedBroker) -> None:
    broker.create_topic("orders", 2)
    broker.create_topic("small", 1, configs={"max.message.bytes": "500"})
    broker.create_topic("log", 1)

    async def requests() -> None:
        async with (
            Client(parse_addresses(broker.bootstrap)) as client,
            asyncio.TaskGroup() as tasks,
        ):
            sender = RestSender(client)
            sending = tasks.create_task(sender.run())
            open_to_all = RestService(sender, RestSettings(host="", port=0, token=None))
            service = RestService(sender, RestSettings(host="", port=0, token=SECRET))
            key = f"Bearer {SECRET}"

            status, reported = await asked(
                service, "/topics/orders?key=k", b"one", authorization=key
            )
            assert status == 200
            assert reported["offsets"][0]["offset"] == 0
            lines = b'{"n":1}\n{"n":2}\n'
            status, reported = await asked(
                service, "/topics/orders?acks=1", lines, authorization=key, content_type=NDJSON
            )
            assert (status, len(reported["offsets"])) == (200, 2)
            status, reported = await asked(service, "/log", b"a line", authorization=key)
            assert (status, reported["offsets"][0]["partition"]) == (200, 0)
            assert (await asked(open_to_all, "/log"))[0] == 200
            assert (await asked(service, "/topics/log?acks=0", authorization=key))[0] == 200

            batch = json.dumps({"records": [{"value": "x"}, {"value": "y" * 1000}]}).encode()
            status, reported = await asked(
                service, "/topics/small", batch, authorization=key, content_type=JSON_BATCH
            )
            assert status == 200
            assert [each["error_code"] for each in reported["offsets"]] == [None, 10]

            for expected, path, body, headers in (
                (401, "/topics/orders", b"v", {}),
                (401, "/topics/orders", b"v", {"authorization": "Bearer other"}),
                (404, "/topics/unknown", b"v", {"authorization": key}),
                (404, "/topics/orders?partition=9", b"v", {"authorization": key}),
                (404, "/elsewhere", b"v", {"authorization": key}),
                (413, "/topics/small", b"v" * 1000, {"authorization": key}),
                (400, "/topics/orders?acks=2", b"v", {"authorization": key}),
                (400, "/topics/orders", b"{", {"authorization": key, "content_type": JSON_BATCH}),
            ):
                status, reported = await asked(service, path, body, **headers)
                assert (status, bool(reported)) == (expected, True), path
            assert (await asked(service, "/topics/orders", method="GET"))[0] == 405
            # A web page in a browser on this machine, which can also reach loopback.
            status, _ = await asked(open_to_all, "/log", origin="http://evil.example")
            assert status == 403

            full = RestSender(client, most_bytes=10)
            full._bytes = 10
            with pytest.raises(TooMuchWaits):
                await full.send([ProducerRecord("log", b"x")], Acks.ALL)
            status, _ = await asked(
                RestService(full, RestSettings(host="", port=0, token=None)), "/log"
            )
            assert status == 429
            sending.cancel()

    asyncio.run(requests())
    values = {each.value() for each in all_records(broker.bootstrap, "orders")}
    assert values == {b"one", b'{"n":1}', b'{"n":2}'}


def test_a_body_without_the_token_is_not_read() -> None:
    async def main() -> bytes:
        settings = RestSettings(host="127.0.0.1", port=0, token=SECRET)
        nowhere = Client(parse_addresses("127.0.0.1:1"))
        async with asyncio.timeout(10), nowhere as client, running_rest(client, settings) as bound:
            reader, writer = await asyncio.open_connection(*bound)
            writer.write(b"POST /log HTTP/1.1\r\nHost: h\r\nContent-Length: 16000000\r\n\r\n")
            try:
                return await reader.readline()
            finally:
                writer.close()

    assert asyncio.run(main()) == b"HTTP/1.1 401 Unauthorized\r\n"


@pytest.mark.slow
@pytest.mark.row("A144")
def test_curl_writes_a_line_to_the_log_topic(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    settings = (f"penstock.rest.listen=127.0.0.1:{port}", "penstock.rest.token=none")
    options = [word for each in settings for word in ("--set", each)]
    with PenstockBroker(*options, folder=tmp_path) as broker:

        def answers() -> bool:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            try:
                connection.request("GET", "/readyz")
                return connection.getresponse().status == 200
            except OSError:
                return False
            finally:
                connection.close()

        wait_until(answers, "the HTTP service")
        line = '192.168.1.7 - "GET /index.html" 200'
        command = ["curl", "-sS", "-f", f"http://127.0.0.1:{port}/log", "-d", line]
        reported: Any = None
        for _ in range(2):
            reported = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        assert reported["offsets"][0]["offset"] == 1
        found = [each.value() for each in all_records(broker.bootstrap, "log")]
        assert found == [line.encode()] * 2


def test_a_service_for_other_machines_needs_a_token() -> None:
    command = [sys.executable, "-m", "penstock", "rest", "serve", "--listen"]
    for options, reported in (
        (["127.0.0.1:0"], "--token-file is missing"),
        (["0.0.0.0:0", "--no-token"], "for loopback only"),
    ):
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert reported in done.stderr
