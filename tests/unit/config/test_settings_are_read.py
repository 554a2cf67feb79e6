"""A declared setting is read by some code, or says that it has no effect."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.broker.app import warn_of_no_effect
from penstock.config.broker import SECTIONS, broker_config, broker_settings
from penstock.config.setting import Setting, SettingError, attribute, settings
from penstock.config.sources import resolve
from penstock.config.topic import TopicConfig

SOURCE = Path(penstock.__file__).parent
READ_BY_COMPUTED_NAMES = re.compile(r"group\.consumer\.(min|max)\.|penstock\.(delay|retry|dlq)\.")
"""See `config/consumer_group.py` and `config/delay_route.py`."""

METHODS = ("preallocate",)
"""Settings whose attributes are also the names of methods."""


def declared() -> Iterator[Setting]:
    for section in (*SECTIONS, TopicConfig):
        yield from settings(section).values()


def accessed() -> set[str]:
    """Every name that follows a dot somewhere in the source."""
    texts = (path.read_text() for path in SOURCE.rglob("*.py"))
    return {name for text in texts for name in re.findall(r"\.(\w+)\b", text)}


@pytest.mark.row("A150")
def test_a_declared_setting_is_read_or_says_that_it_has_no_effect() -> None:
    read = accessed()
    defaults = {synonym.name for each in declared() for synonym in each.synonyms}
    dead = [
        each.name
        for each in declared()
        if attribute(each.name) not in read
        and each.name not in defaults
        and not each.without_effect
        and not each.only
        and not READ_BY_COMPUTED_NAMES.match(each.name)
    ]
    assert dead == []


def test_no_setting_that_has_an_effect_says_that_it_has_none() -> None:
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
def test_a_setting_without_effect_is_a_warning_at_start(
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
        ("queued.max.request.bytes", "200000000", "must be -1: the memory of requests"),
        ("control.plane.listener.name", "CONTROLLER", "must be not set: the controller speaks"),
        ("transaction.two.phase.commit.enable", "true", "must be false: no client can prepare"),
    ],
)
def test_a_value_that_the_broker_cannot_honour_is_rejected(
    name: str, text: str, words: str
) -> None:
    with pytest.raises(SettingError, match=words):
        broker_config({name: text})
    default = broker_settings()[name].default
    if default is not None:
        broker_config({name: str(default).lower()})
