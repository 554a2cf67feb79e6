"""Imports libraries of the extra `cli`; if one is missing, the error has the install command."""

from importlib import import_module
from typing import Any

from penstock.config.extra import install
from penstock.errors import ConfigError


def library(name: str, wanted_for: str) -> Any:
    """A module of an optional library; Any, since it may have no types."""
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise ConfigError(f"{wanted_for} needs {package}: {install('cli')}") from None
