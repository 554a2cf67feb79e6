"""The assignors that `group.consumer.assignors` names: built-in ones, and those of users."""

import logging
from collections.abc import Callable, Iterable
from importlib import import_module
from operator import attrgetter
from typing import Any

from penstock.coordinator.group.consumer.assignor.assignor import (
    BUILT_IN,
    Assignor,
    Assignors,
    named,
)
from penstock.errors import ConfigError

logger = logging.getLogger(__name__)

SETTING = "group.consumer.assignors"


def assignors(configured: Iterable[str]) -> Assignors:
    """In the order of the setting; `package.module:Thing` is imported here, at the start.

    Consumers know it by its attribute `name`, or else as `Thing`.
    """
    known, names = dict(BUILT_IN), []
    for each in configured:
        name = each
        if ":" in each:
            name, assignor = imported(each)
            if name in known:
                raise ConfigError(f"{SETTING}: {each}: another assignor is called {name} already")
            known[name] = assignor
        names.append(name)
    return named(names, known)


def imported(path: str) -> tuple[str, Assignor]:
    module, _, attribute = path.partition(":")
    try:
        found: Any = attrgetter(attribute)(import_module(module))
        made: Callable[..., Any] = found() if isinstance(found, type) else found
    except Exception as error:  # the boundary around user code
        logger.debug("%s cannot be imported", path, exc_info=True)
        raise ConfigError(
            f"{SETTING}: {path} cannot be imported: {type(error).__name__}: {error}; it must be "
            "package.module:name of a function or class, in reach of the broker's PYTHONPATH"
        ) from error
    if not callable(made):
        raise ConfigError(f"{SETTING}: {path} is no function and no class with __call__")
    name = getattr(made, "name", None) or attribute.rpartition(".")[2]
    if not isinstance(name, str):
        raise ConfigError(f"{SETTING}: {path} has a name that is no text: {name!r}")
    return name, made
