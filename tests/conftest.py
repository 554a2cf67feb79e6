"""What all tests share: real peers for those marked `peer`, and Hypothesis settings."""

import faulthandler
import logging
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from peers.kafka import KafkaCluster
from peers.oracle import Oracle
from penstock.compiled import is_compiled

for name, examples in {"quick": 5, "ci": 25, "soak": 2_000}.items():
    settings.register_profile(name, max_examples=examples, deadline=None, print_blob=True)
PROFILES = ("soak", "quick")
settings.load_profile(
    next((each for each in PROFILES if os.environ.get(f"PENSTOCK_{each.upper()}")), "ci")
)

CONTRACT = Path(__file__).parent / "contract"
GRACE_S = float(os.environ.get("PENSTOCK_TEST_GRACE_S", "60"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", metavar="FOLDER", help="save pages of the console there")


@pytest.fixture(scope="session")
def screenshots(pytestconfig: pytest.Config) -> Path | None:
    given = pytestconfig.getoption("--screenshots")
    return None if given is None else Path(given)


def pytest_configure() -> None:
    """Gives ignored signals a handler: programs under test would inherit what `nohup` or `&`
    ignores.

    A signal that has a handler here has its default action in those programs.
    """
    for each in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(each) is signal.SIG_IGN:
            signal.signal(each, lambda *_: None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(CONTRACT):
            item.add_marker(pytest.mark.slow)  # it starts other programs, or brokers as processes
    if is_compiled():
        skipped = pytest.mark.skip(reason="replaces functions of the sources: set PENSTOCK_PURE=1")
        for item in items:
            if item.get_closest_marker("pure"):
                item.add_marker(skipped)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A timeout interrupts only Python. If a test hangs in a C library (librdkafka's close, for
    example), its process is ended some time later: the test has failed, and the others continue in
    a new process.
    """
    marker = item.get_closest_marker("timeout")
    usual = item.config.getoption("timeout") or item.config.getini("timeout")
    limit_s = float(marker.args[0] if marker is not None and marker.args else usual)
    faulthandler.dump_traceback_later(limit_s + GRACE_S, exit=True, file=2)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    if config.getvalue("dist") != "loadfile":
        return None
    from support.side_by_side import (
        PartScheduling,
    )  # only the process that distributes tests needs it

    return PartScheduling(config, log)


@pytest.fixture(scope="module", autouse=True)
def _environment() -> Iterator[None]:
    """Restores the environment and logging after each file, for the tests of the next one."""
    before = dict(os.environ)
    yield
    left = {name for name, _ in {*before.items()} ^ {*os.environ.items()}}
    assert left <= {"PYTEST_CURRENT_TEST"}, f"environment variables changed: {sorted(left)}"
    assert logging.root.manager.disable == logging.NOTSET, "logging was left disabled"


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaCluster]:
    """One real broker, shared by all tests that use it: each has topics of its own."""
    with KafkaCluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def java_oracle() -> Iterator[Oracle]:
    """Kafka 4.4's own message classes."""
    with Oracle() as oracle:
        yield oracle
