"""The console as a person uses it: a real browser, a real broker."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from playwright.sync_api import Browser, Page, expect

from penstock.cli.run_file import RunState, write_run
from penstock.http.access import password_hash
from penstock.local.process import StartedProcess
from penstock.spark.pipeline.progress import BatchProgress
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.registry import EmbeddedRegistry
from support.browser import Tab, chromium
from support.console import QUIET

pytestmark = [pytest.mark.peer, pytest.mark.slow]

WIDTHS = (1280, 390)
FIELDS = '{"name": "id", "type": "long"}'
NOTE = '{"name": "note", "type": "string", "default": ""}'
FIRST = f'{{"type": "record", "name": "Order", "fields": [{FIELDS}]}}'
SECOND = f'{{"type": "record", "name": "Order", "fields": [{FIELDS}, {NOTE}]}}'
PAGES = {
    "overview": "/",
    "topics": "/topics",
    "topic": "/topics/orders",
    "partition": "/topics/orders/partitions/0",
    "schemas": "/schemas",
    "schema": "/schema?subject=orders-value",
    "pipelines": "/pipelines",
    "topic-settings": "/topics/orders/settings",
    "new-topic": "/new-topic",
    "messages": "/topics/orders/messages",
    "search": "/topics/orders/messages?text=customer&expression=value.amount%20%3E%20996",
    "groups": "/groups",
    "group": "/group?group=billing",
    "group-reset": "/group/reset?group=billing",
    "transactions": "/transactions",
    "reassignments": "/reassignments",
    "jobs": "/jobs",
    "audit": "/audit",
    "broker": "/brokers/1",
    "delay": "/delay",
    "waiting": "/delay/later",
    "dead-letters": "/dead-letters/orders.dlq",
    "access": "/access",
    "plan": "/plan?messages_per_second=1000&message_bytes=1024&retention_s=604800",
}
DARK = {"overview", "topics", "topic", "group", "schema", "search"}
"""Pages tested in dark mode. Colours come from one style sheet; these pages have most kinds of
elements.
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A console with users, of a broker with two topics and a group that lags."""
    users = tmp_path_factory.mktemp("console") / "users"
    hashed = password_hash("right")
    users.write_text(f"alice admin {hashed}\nvictor viewer {hashed}\n")
    settings = {"offsets.topic.num.partitions": "1", "num.partitions": "2"}
    shop = tmp_path_factory.mktemp("projects") / "shop"
    shop.mkdir()
    batch = BatchProgress("totals", 3, "2026-01-01T00:00:00Z", 10, 5.0, 200, 7, None, {"paid": 2})
    why = "the column price is unknown"
    ended = RunState(StartedProcess(1, "x"), "local[*]", 1, {"totals": batch}, None, 2, why)
    write_run(shop, ended)
    with EmbeddedBroker(settings=settings) as broker, EmbeddedRegistry(broker.bootstrap) as schemas:
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        for topic in ("orders", "payments.eu"):
            for index in range(500):
                order = {"id": index, "customer": f"c-{index % 40}", "amount": index * 37 % 1000}
                producer.produce(topic, json.dumps(order), str(index))
        assert producer.flush(20) == 0
        broker.create_topic("later", 1, configs={"penstock.delay.to": "orders"})
        broker.create_topic("orders.dlq", 1)
        at = str(round(time.time() * 1000) + 7_200_000)
        headers = {"penstock-error": "the customer is unknown", "penstock-origin-topic": "orders"}
        for index in range(3):
            producer.produce("later", b"x", str(index), headers={"penstock-deliver-at": at})
            producer.produce("orders.dlq", b"x", str(index), headers=dict(headers))
        assert producer.flush(20) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "billing", **QUIET})
        offsets = [TopicPartition("orders", 0, 10), TopicPartition("orders", 1, 20)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()
        command = [sys.executable, "-m", "penstock", "console", "--listen", "127.0.0.1:0"]
        command += ["--bootstrap-server", broker.bootstrap, "--users", str(users)]
        command += ["--registry", schemas.url, "--pipeline", str(shop)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        try:
            found = re.search(r"ready (http://\S+)", said := process.stdout.readline())
            assert found is not None, said
            yield found[1]
        finally:
            process.terminate()
            process.wait(10)
            process.stdout.close()


@pytest.fixture
def tab(browser: Browser, url: str) -> Iterator[Tab]:
    found = Tab(browser, url)
    yield found
    found.close()


def test_roles_decide_what_a_page_offers(tab: Tab) -> None:
    page = tab.page
    page.goto("/topics?match=ord")
    expect(page).to_have_url(re.compile(r"/login\?next="))
    tab.login("victor", "wrong")
    expect(page.get_by_role("alert")).to_have_text("Wrong name or password.")
    tab.errors.clear()  # the browser logs the 401
    page.get_by_label("Password").fill("right")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Cluster")).to_be_visible()
    page.goto("/topics/orders")
    expect(page.get_by_role("heading", name="Partition 0")).to_be_visible()
    expect(page.get_by_text("Add partitions")).to_have_count(0)
    expect(page.get_by_role("link", name="Audit")).to_have_count(0)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    assert tab.errors == []


def test_an_admin_creates_a_topic_and_deletes_it(tab: Tab) -> None:
    page = tab.page
    tab.login("alice", "right")
    expect(page.get_by_role("heading", name="Cluster")).to_be_visible()
    page.get_by_role("link", name="Topics").click()
    page.get_by_role("link", name="New topic").click()
    page.get_by_label("Name").fill("made")
    page.get_by_label("Partitions").fill("3")
    page.get_by_label("retention.ms").fill("5000")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Partition 2")).to_be_visible()
    page.get_by_role("link", name="Settings").click()
    setting = page.locator("[id='retention.ms']")
    expect(setting.get_by_label("retention.ms")).to_have_value("5000")
    setting.get_by_role("button", name="Reset to the default").click()
    expect(setting.get_by_label("retention.ms")).to_have_value("604800000")
    page.goto("/topics/made")
    page.get_by_text("Delete", exact=True).first.click()
    page.get_by_label("Type made to delete it").fill("mad")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("alert")).to_have_text("confirm must be the name: made")
    tab.errors.clear()
    page.get_by_label("Type made to delete it").fill("made")
    page.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(re.compile("/topics$"))
    expect(page.get_by_role("link", name="made")).to_have_count(0)
    page.get_by_role("link", name="Audit").click()
    expect(page.get_by_role("cell", name="topic.delete").first).to_be_visible()
    assert tab.errors == []


def test_a_group_is_reset_after_a_preview(tab: Tab) -> None:
    page = tab.page
    tab.login("alice", "right")
    expect(page.get_by_role("heading", name="Cluster")).to_be_visible()
    page.goto("/group?group=billing")
    page.get_by_role("link", name="Reset offsets").click()
    offset = page.get_by_label("new offset of orders-1")
    expect(offset).to_have_value("20")
    offset.fill("5")
    page.get_by_role("button", name="Show the new offsets").last.click()
    expect(page.get_by_role("heading", name="This would change")).to_be_visible()
    page.get_by_role("button", name="Reset to these offsets").click()
    expect(page.get_by_role("status")).to_have_text("The offsets of billing are reset.")
    page.reload()
    expect(page.get_by_label("new offset of orders-1")).to_have_value("5")
    assert tab.errors == []


def test_one_dead_letter_is_redriven(tab: Tab) -> None:
    page = tab.page
    tab.login("alice", "right")
    expect(page.get_by_role("heading", name="Cluster")).to_be_visible()
    page.goto("/delay")
    page.get_by_role("link", name="orders.dlq").click()
    page.get_by_label("letter 0:1").check()
    page.get_by_role("button", name="Only show").click()
    expect(page.get_by_role("status")).to_have_text("would go: 1 to orders")
    page.get_by_role("button", name="Redrive").click()
    expect(page.get_by_role("cell", name="redrive orders.dlq")).to_be_visible()
    expect(page.get_by_role("cell", name="1 to orders")).to_be_visible()
    page.goto("/dead-letters/orders.dlq")
    expect(page.get_by_role("heading", name="2 dead letters in orders.dlq")).to_be_visible()
    tab.resize(390)
    expect(page.locator("td.long")).to_have_count(2)
    for error in page.locator("td.long").all():
        box = error.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390
    tab.resize(1280)
    assert tab.errors == []


def test_a_schema_is_tested_and_registered(tab: Tab) -> None:
    page = tab.page
    tab.login("alice", "right")
    expect(page.get_by_role("heading", name="Cluster")).to_be_visible()
    register(page, "orders-value", FIRST)
    page.goto("/schemas")
    page.get_by_role("link", name="orders-value").click()
    expect(page.get_by_role("heading", name="Version 1")).to_be_visible()
    area = page.get_by_role("textbox", name="schema")
    area.fill(SECOND.replace(', "default": ""', ""))
    page.get_by_role("button", name="Test compatibility").click()
    expect(page.get_by_role("alert")).to_contain_text("READER_FIELD_MISSING_DEFAULT_VALUE")
    tab.errors.clear()  # the browser logs the 400
    area.fill(SECOND)
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", name="Version 2")).to_be_visible()
    expect(page.locator(".diff .added").first).to_be_visible()
    assert tab.errors == []


def test_a_pipelines_last_error_is_shown_and_it_is_started(tab: Tab) -> None:
    page = tab.page
    tab.login("alice", "right")
    expect(page.get_by_role("heading", name="Cluster")).to_be_visible()
    page.get_by_role("link", name="Pipelines").click()
    expect(page.get_by_text("does not run")).to_be_visible()
    expect(page.get_by_text("the column price is unknown")).to_be_visible()
    with page.expect_response("**/pipelines/start"):  # or the next click may interrupt it
        page.get_by_role("button", name="Start shop").click()
    expect(page).to_have_url(re.compile("/pipelines$"))
    page.get_by_role("link", name="Jobs").click()
    expect(page.get_by_role("cell", name="start pipeline shop")).to_be_visible()
    expect(page.get_by_role("cell", name="no spark-pipeline.yml there")).to_be_visible()
    page.get_by_role("link", name="Audit").click()
    expect(page.get_by_role("cell", name="pipeline.start").first).to_be_visible()
    assert tab.errors == []


def test_keyboard_shortcuts_open_pages_and_focus_the_search(tab: Tab) -> None:
    page = tab.page
    tab.login("victor", "right")
    expect(page.get_by_role("heading", name="Cluster")).to_be_visible()
    page.wait_for_load_state()  # until its script listens
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.type("gt")
    expect(page).to_have_url(re.compile("/topics$"))
    page.wait_for_load_state()  # until its script listens
    page.keyboard.press("/")
    search = page.get_by_role("searchbox")
    expect(search).to_be_focused()
    page.keyboard.type("g/?t")  # now they are plain letters
    expect(search).to_have_value("g/?t")
    page.keyboard.press("Tab")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    expect(page.get_by_role("definition").filter(has_text="Groups")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.type("gg")
    expect(page).to_have_url(re.compile("/groups$"))
    assert tab.errors == []


def test_lists_are_sorted_by_a_click(tab: Tab) -> None:
    page = tab.page
    tab.login("victor", "right")
    expect(page.get_by_role("heading", name="Cluster")).to_be_visible()
    page.goto("/topics?match=o")
    page.get_by_role("link", name="Records", exact=True).click()
    expect(page).to_have_url(re.compile(r"/topics\?match=o&sort=-records$"))
    first = page.locator("tbody tr").first
    expect(first).to_contain_text("orders")
    assert tab.errors == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_fits_a_desktop_and_a_phone(
    browser: Browser, url: str, dark: bool, screenshots: Path | None
) -> None:
    tab = Tab(browser, url, dark=dark)
    tab.login("alice", "right")
    expect(tab.page.get_by_role("heading", name="Cluster")).to_be_visible()
    register(tab.page, "orders-value", FIRST)
    ending = "-dark" if dark else ""
    for name, path in PAGES.items():
        if dark and name not in DARK:
            continue
        tab.page.goto(path)
        expect(tab.page.get_by_role("heading", level=1)).to_be_visible()
        assert tab.nameless() == [], f"{name}: what a screen reader cannot name"
        for width in WIDTHS:
            tab.resize(width)
            assert tab.too_wide_by() <= 0, f"{name} at {width}"
            if screenshots is not None:
                file = screenshots / f"console-{name}-{width}{ending}.png"
                tab.page.screenshot(path=file, full_page=False)
    ground = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground != "rgb(255, 255, 255)") == dark
    assert tab.errors == []
    tab.close()


def register(page: Page, subject: str, schema: str) -> None:
    """Registers a schema by the API, as a script does; repeating it changes nothing."""
    token = page.evaluate("document.body.getAttribute('hx-headers')")
    answer = page.request.post(
        "/api/v1/schemas",
        data={"subject": subject, "schema": schema},
        headers={**json.loads(token), "Origin": origin(page)},
    )
    assert answer.ok, answer.text()


def origin(page: Page) -> str:
    return str(page.evaluate("location.origin"))
