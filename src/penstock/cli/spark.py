"""Imports Spark when a command needs it, and reports what is not installed."""

from importlib import import_module
from types import ModuleType

from penstock.config.extra import install
from penstock.errors import ConfigError


def spark_part(name: str) -> ModuleType:
    """Import `penstock.spark.<name>`."""
    try:
        return import_module(f"penstock.spark.{name}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in {"", "penstock"}:
            raise
        raise ConfigError(
            f"{package} is not installed, which Spark commands need: {install('spark')}"
        ) from error
