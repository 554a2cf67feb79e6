"""A declared setting is read by some code, or is declared to have no effect."""

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import penstock
from penstock.broker.app import warn_of_no_effect
from penstock.config.broker import SECTIONS, BrokerConfig, broker_config, broker_settings
from penstock.config.delay_route import ROUTE_SETTINGS
from penstock.config.setting import Setting, SettingError, attribute, settings
from penstock.config.sources import resolve
from penstock.config.topic import TopicConfig

SOURCE = Path(penstock.__file__).parent
PARTS = {each.name for each in fields(BrokerConfig)}

BOUNDED = {
    "consumer": ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"),
    "share": (
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "assignment.interval.ms",
        "delivery.count.limit",
        "record.lock.duration.ms",
        "partition.max.record.locks",
    ),
    "streams": ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"),
}
"""Group settings with bounds of the broker, read by `getattr`: `config/consumer_group.py`,
`config/share_group.py` and `config/streams_group.py`.
"""
READ_BY_COMPUTED_NAMES = {
    *(
        f"group.{kind}.{which}.{name}"
        for kind in BOUNDED
        for name in BOUNDED[kind]
        for which in ("min", "max")
    ),
    # Defaults for groups without own settings: the same files.
    "group.share.assignment.interval.ms",
    "group.share.delivery.count.limit",
    "group.share.partition.max.record.locks",
    "group.share.record.lock.duration.ms",
    "group.streams.assignment.interval.ms",
    "group.streams.initial.rebalance.delay.ms",
    # The route settings of a topic are read as a whole: `config/delay_route.py`.
    *ROUTE_SETTINGS,
}

METHODS = ("preallocate",)
"""Settings whose attributes are also the names of methods."""


def declared() -> Iterator[Setting]:
    for section in (*SECTIONS, TopicConfig):
        yield from settings(section).values()


def accessed() -> set[str]:
    """Every attribute that the source reads from a config. A read counts in a file that imports a
    settings class, or if the name before the dot is that of a config.
    """
    return {name for path in SOURCE.rglob("*.py") for name in read_in(path.read_text())}


def read_in(source: str) -> Iterator[str]:
    nodes = list(ast.walk(ast.parse(source)))
    knows_settings = any(
        isinstance(each, ast.ImportFrom) and (each.module or "").startswith("penstock.config")
        for each in nodes
    )
    for each in nodes:
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load):
            of = owner(each.value)
            if knows_settings or of.endswith("config") or of in PARTS:
                yield each.attr


def owner(value: ast.expr) -> str:
    """The last name of an expression, or of the function that it calls."""
    if isinstance(value, ast.Call):
        return owner(value.func)
    if isinstance(value, ast.Attribute):
        return value.attr
    return value.id if isinstance(value, ast.Name) else ""


def test_an_attribute_of_another_object_is_not_a_setting() -> None:
    """`request.timeout.ms` once passed as read because clients have an attribute of that name."""
    assert set(read_in("limit = client.settings.request_timeout_ms")) == set()
    assert "request_timeout_ms" in set(read_in("limit = ctx.config.network.request_timeout_ms"))
    assert "x_ms" in set(read_in("from penstock.config.group import GroupConfig\ny = given.x_ms"))


def test_every_excepted_setting_is_declared() -> None:
    names = {each.name for each in declared()}
    assert names >= READ_BY_COMPUTED_NAMES


@pytest.mark.row("A150")
def test_a_declared_setting_is_read_or_declared_without_effect() -> None:
    read = accessed()
    defaults = {synonym.name for each in declared() for synonym in each.synonyms}
    dead = [
        each.name
        for each in declared()
        if attribute(each.name) not in read
        and each.name not in defaults
        and not each.without_effect
        and not each.only
        and each.name not in READ_BY_COMPUTED_NAMES
    ]
    assert dead == []


def test_no_setting_that_is_read_is_declared_without_effect() -> None:
    read = accessed()
    silent = [each.name for each in declared() if each.without_effect]
    wrong = [name for name in silent if attribute(name) in read and name not in METHODS]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.preallocate", "true"),
        ("num.recovery.threads.per.data.dir", "8"),
        ("unclean.leader.election.interval.ms", "1000"),
        ("replication.quota.window.num", "5"),
        ("replication.quota.window.size.seconds", "2"),
    ],
)
def test_a_setting_without_effect_is_a_warning_at_startup(
    name: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_no_effect(resolve(pairs=[f"{name}={text}"]))
    assert caplog.messages == [f"{name}={text}: {broker_settings()[name].doc}"]
    caplog.clear()
    default = str(broker_settings()[name].default).lower()
    warn_of_no_effect(resolve(pairs=[f"{name}={default}"]))
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("control.plane.listener.name", "CONTROLLER", "must be not set: the controller speaks"),
        ("transaction.two.phase.commit.enable", "true", "must be false: no client can prepare"),
        ("create.topic.policy.class.name", "org.example.P", "must be not set: Java classes"),
        ("alter.config.policy.class.name", "org.example.P", "must be not set: Java classes"),
        ("client.quota.callback.class", "org.example.C", "must be not set: Java classes"),
        ("log.message.timestamp.difference.max.ms", "1000", "log.message.timestamp.before.max.ms"),
    ],
)
def test_a_value_that_the_broker_cannot_support_is_rejected(
    name: str, text: str, words: str
) -> None:
    with pytest.raises(SettingError, match=words):
        broker_config({name: text})
    default = broker_settings()[name].default
    if default is not None:
        broker_config({name: str(default).lower()})
