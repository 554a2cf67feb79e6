"""A broker stops and comes back, as a person sees it: replicas, problems, timeline."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from playwright.sync_api import expect

from penstock.testing.cluster import TemporaryCluster
from support.browser import Tab, chromium
from support.console import QUIET

pytestmark = [pytest.mark.peer, pytest.mark.slow]

SETTINGS = {"replica.lag.time.max.ms": "3000", "offsets.topic.num.partitions": "1"}


@pytest.fixture
def cluster() -> Iterator[TemporaryCluster]:
    with TemporaryCluster(2, settings=SETTINGS) as found:
        found.create_topic("orders", 2, 2)
        producer = Producer({"bootstrap.servers": found.bootstrap, "acks": "all", **QUIET})
        for index in range(300):
            producer.produce("orders", b"x" * 200, str(index))
        assert producer.flush(30) == 0
        yield found


@pytest.fixture
def url(cluster: TemporaryCluster) -> Iterator[str]:
    command = [sys.executable, "-m", "penstock", "console", "--listen", "127.0.0.1:0"]
    command += ["--bootstrap-server", cluster.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"ready (http://\S+)", said := process.stdout.readline())
        assert found is not None, said
        yield found[1]
        process.terminate()


def test_an_open_page_shows_the_isr_shrink_and_expand(
    cluster: TemporaryCluster, url: str, screenshots: Path | None
) -> None:
    with chromium() as browser:
        tab = Tab(browser, url)
        page = tab.page
        page.goto("/topics/orders")
        expect(page.get_by_text(re.compile(r"in sync (0, 1|1, 0) of")).first).to_be_visible()
        expect(page.get_by_text("not in sync")).to_have_count(0)
        cluster.stop(1)
        expect(page.get_by_text("not in sync")).to_have_count(2)  # without a reload
        expect(page.get_by_text("its broker does not answer").first).to_be_visible()
        if screenshots is not None:
            page.screenshot(path=screenshots / "console-replicas-1280.png")
        page.goto("/")
        expect(page.get_by_text("broker 1 is gone")).to_be_visible()
        expect(page.get_by_text("broker 1 left the ISR of").first).to_be_visible()
        expect(page.get_by_role("heading", name="2 partitions have replicas")).to_be_visible()
        if screenshots is not None:
            page.screenshot(path=screenshots / "console-failover-1280.png", full_page=True)
        cluster.start(1)
        expect(page.get_by_text("broker 1 is there")).to_be_visible()
        expect(page.get_by_text("broker 1 joined the ISR of").first).to_be_visible()
        page.goto("/topics/orders")
        expect(page.get_by_text("not in sync")).to_have_count(0)
        assert tab.errors == []
        tab.close()
