"""The console beside a broker: a process that ends with the broker."""

import re
import ssl
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect

from peers.penstock import PenstockBroker
from peers.process import wait_until
from penstock.local.ports import free_ports
from penstock.testing.broker import EmbeddedBroker
from support.browser import Tab, chromium
from support.console import get
from support.security.certificates import certified
from support.security.identity_provider import CLIENT, SECRET, identity_provider

pytestmark = pytest.mark.slow
WAIT_S = 30


def process_of(listen: str) -> int | None:
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"console" in words and listen.encode() in words:
            return int(each.parent.name)
    return None


def test_the_console_of_a_broker_starts_and_ends_with_it(tmp_path: Path) -> None:
    port = free_ports(1)
    url = f"http://127.0.0.1:{port}/api/v1/cluster"

    def answers() -> bool:
        try:
            return get(url)[0] == 200
        except (URLError, ConnectionError):
            return False

    with PenstockBroker(f"--console={port}", folder=tmp_path) as broker:
        wait_until(answers, WAIT_S, "the console")
        console = process_of(f"127.0.0.1:{port}")
        assert console is not None
        assert console not in broker.pids.values()
        broker.kill(0)  # the broker cannot stop it
    wait_until(lambda: not Path(f"/proc/{console}").exists(), WAIT_S, "the end of the console")


def test_a_broker_with_an_exposed_console_needs_users(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "serve", "--set", "penstock.console.listen=0.0.0.0:1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S,
    )
    assert done.returncode == 2
    assert "penstock.console.listen is 0.0.0.0, which other machines reach" in done.stderr


@pytest.mark.peer
def test_a_browser_logs_in_with_an_identity_provider_of_another_site(tmp_path: Path) -> None:
    port = free_ports(1)
    url, users, oidc = f"http://127.0.0.1:{port}", tmp_path / "users", tmp_path / "oidc"
    users.write_text("alice viewer oidc\n")
    with EmbeddedBroker() as broker, identity_provider("localhost") as provider:
        given = {"issuer": provider.url, "client.id": CLIENT, "client.secret": SECRET}
        given["redirect.uri"] = f"{url}/login/oidc/callback"
        oidc.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        command = [sys.executable, "-m", "penstock", "console", "--listen", f"127.0.0.1:{port}"]
        command += ["--users", str(users), "--oidc", str(oidc)]
        command += ["--bootstrap-server", broker.bootstrap]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            assert "ready" in process.stdout.readline()
            with chromium() as browser:
                tab = Tab(browser, url)
                tab.page.goto("/groups?match=x")
                tab.page.get_by_role("link", name="identity provider").click()
                tab.page.get_by_role("link", name="I am Alice").click()
                expect(tab.page).to_have_url(f"{url}/groups?match=x")
                expect(tab.page.get_by_role("heading", name="Groups")).to_be_visible()
                assert tab.errors == []
                tab.close()
        finally:
            process.terminate()
            process.wait(10)
            process.stdout.close()


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", "--oidc needs --users"),
        ("users", "issuer is missing"),
        ("users\nissuer=http://a.example", "client.id is missing"),
    ],
)
def test_a_console_does_not_start_with_an_incomplete_provider(
    tmp_path: Path, text: str, refusal: str
) -> None:
    users, oidc = tmp_path / "users", tmp_path / "oidc"
    users.write_text("alice viewer oidc\n")
    oidc.write_text(text.partition("\n")[2])
    command = [sys.executable, "-m", "penstock", "console", "--oidc", str(oidc)]
    command += ["--users", str(users)] if text else []
    done = subprocess.run(
        [*command, "--bootstrap-server", "127.0.0.1:1", "--listen", "127.0.0.1:0"],
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S,
    )
    assert (done.returncode, refusal in done.stderr) == (2, True), done.stderr


def test_a_console_serves_tls(tmp_path: Path) -> None:
    own = certified(tmp_path, "console")
    with EmbeddedBroker() as broker:
        command = [sys.executable, "-m", "penstock", "console", "--listen", "127.0.0.1:0"]
        command += ["--bootstrap-server", broker.bootstrap, "--keystore", str(own.store)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            found = re.search(r"ready (https://\S+)", said := process.stdout.readline())
            assert found is not None, said
            trusting = ssl.create_default_context(cafile=str(own.certificate))
            with urlopen(f"{found[1]}/static/console.css", context=trusting, timeout=20) as answer:
                assert answer.status == 200
        finally:
            process.terminate()
            process.wait(10)
            process.stdout.close()
