"""Messages as a person uses them: search, stop, count, follow, pause, write and import."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from playwright.sync_api import expect

from penstock.testing.broker import EmbeddedBroker
from support.browser import Tab, chromium
from support.console import QUIET

pytestmark = [pytest.mark.peer, pytest.mark.slow]

EVIL = "<img src=x onerror=alert(1)>"
LONG = "l" * 249
"""The longest name that a topic may have; also a group's name, and its topic has a record of 900
kB.
"""


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with EmbeddedBroker() as broker:
        broker.create_topic("orders", 2)
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        for index in range(1000):
            producer.produce("orders", f'{{"n": {index}, "note": "{EVIL}"}}', f"key-{index}")
        broker.create_topic(LONG)
        producer.produce(LONG, b"x" * 900_000)
        assert producer.flush(20) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": LONG, **QUIET})
        consumer.commit(offsets=[TopicPartition(LONG, 0, 0)], asynchronous=False)
        consumer.close()
        command = [sys.executable, "-m", "penstock", "console", "--listen", "127.0.0.1:0"]
        command += ["--bootstrap-server", broker.bootstrap]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        try:
            ready = re.search(r"ready (http://\S+)", said := process.stdout.readline())
            assert ready is not None, said
            with chromium() as browser:
                found = Tab(browser, ready[1])
                found.page.goto("/")
                expect(found.page.get_by_role("heading", name="Cluster")).to_be_visible()
                found.errors.clear()  # the first snapshot may not be ready at once
                yield found
                found.close()
        finally:
            process.terminate()
            process.wait(10)
            process.stdout.close()


def test_a_person_searches_follows_writes_and_imports_messages(tab: Tab, tmp_path: Path) -> None:
    page = tab.page
    page.goto("/topics/orders")
    page.get_by_role("link", name="Messages").click()
    expect(page.locator("#rows tr")).to_have_count(50)
    page.get_by_role("button", name="Count all").click()
    expect(page.locator("#progress")).to_contain_text("1,000 found.")
    page.get_by_label("CEL").fill("value.n >= 990")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#progress")).to_contain_text("10 found. 1,000 of 1,000")
    expect(page.locator("#rows tr")).to_have_count(10)
    page.locator("#rows a").first.click()
    expect(page.get_by_role("heading", name="Batch")).to_be_visible()
    expect(page.locator("pre").last).to_contain_text("<img src=x")
    for path in ("/topics/orders/messages", page.url):
        page.goto(path)
        for width in (390, 1280):
            tab.resize(width)
            assert tab.too_wide_by() <= 0, f"{path} at {width}"

    page.goto("/topics/orders/messages?limit=1")
    page.get_by_role("button", name="Follow").click()
    expect(page.locator("#followed")).to_have_text("Waiting for new messages.")
    page.get_by_text("Write a message").click()

    def write(value: str) -> None:
        page.locator("textarea[name=value]").fill(value)
        page.get_by_role("button", name="Write").click()
        expect(page.locator(".done")).to_contain_text("Written to orders-")

    write(EVIL)
    expect(page.locator("tr.new code")).to_have_text([EVIL])
    page.get_by_role("button", name="Pause").click()
    file = tmp_path / "more.txt"
    file.write_text("first\nsecond\n")
    page.get_by_text("Import a file").click()
    page.locator("input[type=file]").set_input_files(file)
    page.locator("#import select").select_option("text")
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("#imported")).to_have_text("2 messages written.")
    expect(page.locator("tr.new")).to_have_count(1)
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("tr.new")).to_have_count(3)
    assert tab.errors == []


def test_large_records_and_long_names_are_readable(tab: Tab) -> None:
    """No form of megabytes, on which the browser hangs; all columns of all other rows are
    visible.
    """
    page = tab.page
    page.goto(f"/topics/{LONG}/messages/0/0")
    expect(page.get_by_text("The record is too large for a form.")).to_be_visible()
    assert page.locator("textarea").count() == 0
    for path in ("/topics", "/groups"):
        page.goto(path)
        expect(page.get_by_role("link", name=LONG)).to_be_visible()
        table = page.locator(".wide").first
        assert table.evaluate("(each) => each.scrollWidth - each.clientWidth") == 0, path
    tab.resize(390)
    page.goto("/topics/orders/messages?limit=2")
    for cell in page.locator("#rows td").all():
        box = cell.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    tab.resize(1280)
    assert tab.errors == []


def test_a_page_says_that_its_subject_is_gone_or_the_server_does_not_answer(tab: Tab) -> None:
    page = tab.page
    page.goto("/new-topic")
    page.get_by_label("Name", exact=True).fill("short-lived")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="short-lived")).to_be_visible()
    page.route("**/topics/short-lived", lambda route: route.abort())
    expect(page.get_by_role("alert")).to_have_text(
        "The console does not answer: what follows is old."
    )
    page.unroute("**/topics/short-lived")
    expect(page.get_by_role("alert")).to_have_count(0)
    token = page.request.get("/api/v1/session").json()["csrf_token"]
    deleted = page.request.post(
        "/api/v1/topics/short-lived/delete",
        data={"confirm": "short-lived"},
        headers={"X-CSRF-Token": token},
    )
    assert deleted.ok
    expect(page.get_by_text("There is no topic short-lived.")).to_be_visible()
    tab.errors.clear()  # the browser logs both errors
