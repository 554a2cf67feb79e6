"""The levels of this process's loggers by Kafka's names, as BROKER_LOGGER resources (KIP-412)."""

import logging
from collections.abc import Iterator

from penstock.controller.topics import InvalidConfig
from penstock.errors import InvalidRequest

ROOT = "root"
TRACE = 5
LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}


def loggers() -> Iterator[tuple[str, str]]:
    """Every logger with its effective level; the root is last."""
    for name, known in sorted(logging.root.manager.loggerDict.items()):
        if isinstance(known, logging.Logger):
            yield name, _kafka_name(known.getEffectiveLevel())
    yield ROOT, _kafka_name(logging.root.level)


def check_level(name: str, level: str | None) -> None:
    """Refuse changes that `set_level` could not make."""
    if name != ROOT and not isinstance(logging.root.manager.loggerDict.get(name), logging.Logger):
        raise InvalidConfig(f"there is no logger {name}")
    if level is None and name == ROOT:
        raise InvalidRequest("the root logger always has a level")
    if level is not None and level not in LEVELS:
        raise InvalidConfig(f"{name} cannot have level {level}, only {', '.join(LEVELS)}")


def set_level(name: str, level: str | None) -> None:
    """Set a logger's level; None lets it inherit again."""
    logger = logging.root if name == ROOT else logging.getLogger(name)
    logger.setLevel(logging.NOTSET if level is None else LEVELS[level])


def _kafka_name(level: int) -> str:
    """Kafka's name for the highest of its levels that is not above this one."""
    return next((name for name, number in LEVELS.items() if number <= level), "TRACE")
