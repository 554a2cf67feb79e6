"""Loads the configured assignors of partitions and tasks: built-in ones, and those of users.

`package.module:Thing` is imported here, at start-up. Its name is its attribute `name`, or else
`Thing`.
"""

import logging
from collections.abc import Iterable, Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any, TypeVar

from penstock.coordinator.group.consumer.assignor.assignor import BUILT_IN, Assignors, named
from penstock.coordinator.group.streams import assignors as tasks
from penstock.errors import ConfigError

logger = logging.getLogger(__name__)

SETTING = "group.consumer.assignors"

T = TypeVar("T")


def assignors(configured: Iterable[str]) -> Assignors:
    """The assignors of the consumer protocol, in the order of the setting."""
    return named(*imported(SETTING, configured, BUILT_IN))


def task_assignors(configured: Iterable[str]) -> tasks.TaskAssignors:
    """The assignors of streams groups, in the order of the setting."""
    return tasks.named(*imported(tasks.SETTING, configured, tasks.BUILT_IN))


def imported(
    setting: str, configured: Iterable[str], built_in: Mapping[str, T]
) -> tuple[list[str], dict[str, T]]:
    """The configured names, and all available assignors by name."""
    known, names = dict(built_in), []
    for each in configured:
        name = each
        if ":" in each:
            name, assignor = loaded(setting, each)
            if name in known:
                raise ConfigError(f"{setting}: {each}: another assignor is called {name} already")
            known[name] = assignor
        names.append(name)
    return names, known


def loaded(setting: str, path: str) -> tuple[str, Any]:
    """An assignor and its name. Its results are validated at each call, not here."""
    module, _, attribute = path.partition(":")
    try:
        found: Any = attrgetter(attribute)(import_module(module))
        made: Any = found() if isinstance(found, type) else found
    except Exception as error:  # the boundary around user code
        logger.debug("%s cannot be imported", path, exc_info=True)
        raise ConfigError(
            f"{setting}: {path} cannot be imported: {type(error).__name__}: {error}; it must be "
            "package.module:name of a function or class, in reach of the broker's PYTHONPATH"
        ) from error
    if not callable(made):
        raise ConfigError(f"{setting}: {path} is neither a function nor a class with __call__")
    name = getattr(made, "name", None) or attribute.rpartition(".")[2]
    if not isinstance(name, str):
        raise ConfigError(f"{setting}: {path} has a name that is not a text: {name!r}")
    return name, made
