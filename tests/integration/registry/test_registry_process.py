"""Registries as processes: beside a broker, several at once, and killed while they register."""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.error import URLError

import pytest
from confluent_kafka import Consumer

from peers.penstock import PenstockBroker
from peers.process import wait_until
from penstock.local.ports import free_ports
from penstock.testing.broker import EmbeddedBroker
from support.registry.rest import rest
from support.security.certificates import certified

WAIT_S = 30
QUICK = {"group.initial.rebalance.delay.ms": "0"}


@contextmanager
def registry_process(bootstrap: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Starts a registry; yields the process and its URL."""
    command = [sys.executable, "-m", "penstock", "registry", "serve", "--log-level", "error"]
    listen = [] if "--listen" in options else ["--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--bootstrap-server", bootstrap, *listen, *options],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("ready "), line
            yield process, f"http://{line.split()[1]}"
        finally:
            process.kill()


def enum(name: str) -> dict[str, str]:
    return {"schema": json.dumps({"type": "enum", "name": name, "symbols": ["A"]})}


def registered(bootstrap: str) -> dict[int, set[str]]:
    """The schemas of each id, from every record that was ever committed to the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "check",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe(["_schemas"])
    found = defaultdict(set)
    while True:
        message = consumer.poll(WAIT_S)
        assert message is not None
        if message.error() is not None:
            break
        key, value = json.loads(message.key() or b"{}"), message.value()
        if key["keytype"] == "SCHEMA" and value is not None:
            found[json.loads(value)["id"]].add(json.loads(value)["schema"])
    consumer.close()
    return found


def test_a_brokers_registry_is_killed_and_comes_back(tmp_path: Path) -> None:
    port = free_ports(1)
    setting = f"penstock.registry.listen=127.0.0.1:{port}"
    with PenstockBroker("--set", setting, folder=tmp_path):
        url = f"http://127.0.0.1:{port}"

        def answers() -> bool:
            try:
                return rest("GET", f"{url}/subjects")[0] == 200
            except (URLError, ConnectionError):
                return False

        wait_until(answers, WAIT_S, "the registry")
        assert rest("POST", f"{url}/subjects/s/versions", enum("a")) == (200, {"id": 1})
        os.kill(service_of(f"127.0.0.1:{port}"), signal.SIGKILL)
        wait_until(answers, WAIT_S, "the registry after a kill")
        assert rest("GET", f"{url}/subjects") == (200, ["s"])


def service_of(listen: str) -> int:
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"registry" in words and listen.encode() in words:
            return int(each.parent.name)
    raise AssertionError("the registry does not run")


def test_no_id_is_assigned_twice_although_both_instances_are_killed() -> None:
    """One of the two leads, so one kill hits the leader while clients register through both."""
    answered: dict[str, set[int]] = defaultdict(set)
    port = free_ports(2)
    urls = [f"http://127.0.0.1:{port + index}" for index in range(2)]
    stop = threading.Event()

    def register(url: str, name: str) -> None:
        number = 0
        while not stop.is_set():
            schema = f"{name}{number}"
            try:
                status, body = rest("POST", f"{url}/subjects/{schema}/versions", enum(schema))
            except OSError:
                time.sleep(0.05)
                continue
            if status == 200:
                answered[schema].add(body["id"])
                number += 1

    with EmbeddedBroker(settings=QUICK) as broker, ExitStack() as stack:

        def start(index: int) -> subprocess.Popen[str]:
            listen = f"127.0.0.1:{port + index}"
            started = registry_process(broker.bootstrap, "--listen", listen)
            return stack.enter_context(started)[0]

        processes = [start(0), start(1)]
        clients = [
            threading.Thread(target=register, args=(url, name))
            for url, name in zip(urls, "ab", strict=True)
        ]
        for each in clients:
            each.start()
        for index in (0, 1):
            before = len(answered)
            wait_until(lambda: len(answered) > before + 5, WAIT_S, "registrations")  # noqa: B023
            processes[index].kill()
            processes[index].wait()
            start(index)
        before = len(answered)
        wait_until(lambda: len(answered) > before + 5, WAIT_S, "registrations after the kills")
        stop.set()
        for each in clients:
            each.join()
        for schema, (found,) in answered.items():
            for url in urls:
                status, body = rest("GET", f"{url}/schemas/ids/{found}")
                assert (status, json.loads(body["schema"])["name"]) == (200, schema)
        ids = registered(broker.bootstrap)
        assert {each: texts for each, texts in ids.items() if len(texts) > 1} == {}
        assert len(ids) >= len(answered)


def test_a_process_checks_its_users(tmp_path: Path) -> None:
    made = subprocess.run(
        [
            sys.executable,
            "-m",
            "penstock",
            "registry",
            "user",
            "ci",
            "--role",
            "operator",
            "--token",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    users = tmp_path / "users"
    users.write_text(made.stdout)
    found = re.search(r"token (\S+)", made.stderr)
    assert found is not None
    login = {"Authorization": f"Bearer {found[1]}"}
    with (
        EmbeddedBroker(settings=QUICK) as broker,
        registry_process(broker.bootstrap, "--users", str(users)) as (_, first),
        registry_process(broker.bootstrap, "--users", str(users)) as (_, second),
    ):
        for url in (first, second):
            assert rest("GET", f"{url}/subjects")[0] == 401
            assert rest("POST", f"{url}/subjects/{url[-4:]}/versions", enum("e"), login)[0] == 200
            status, body = rest("PUT", f"{url}/config", {"compatibility": "NONE"}, login)
            assert (status, body["error_code"]) == (403, 40301)


def test_tls_and_client_certificates_are_checked(tmp_path: Path) -> None:
    own = certified(tmp_path, "registry")
    options = ("--keystore", str(own.store), "--truststore", str(own.certificate))
    with (
        EmbeddedBroker(settings=QUICK) as broker,
        registry_process(broker.bootstrap, *options) as (_, first),
        registry_process(broker.bootstrap, *options) as (_, second),
    ):
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.load_verify_locations(own.certificate)
        for url in (first, second):
            with pytest.raises((ssl.SSLError, ConnectionError, URLError)):
                secured(url, client, "stranger")
        client.load_cert_chain(own.store)
        # One instance forwards the request to the other, also over TLS.
        assert [secured(url, client, url[-5:]) for url in (first, second)] == [200, 200]


def secured(url: str, context: ssl.SSLContext, subject: str) -> int:
    request = urllib.request.Request(
        f"https{url.removeprefix('http')}/subjects/{subject}/versions",
        json.dumps(enum("e")).encode(),
    )
    with urllib.request.urlopen(request, context=context, timeout=WAIT_S) as answer:
        return int(answer.status)


@pytest.mark.parametrize("options", [["registry", "serve", "--listen"], ["serve", "--set"]])
def test_a_registry_for_other_machines_needs_users(options: list[str], tmp_path: Path) -> None:
    address = "0.0.0.0:8081"
    given = address if options[0] == "registry" else f"penstock.registry.listen={address}"
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *options, given],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S,
    )
    assert done.returncode == 2
    assert "users file" in done.stderr
