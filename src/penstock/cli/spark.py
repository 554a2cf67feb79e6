"""The commands that run on Spark import it when they are called, and say what is missing."""

from importlib import import_module
from types import ModuleType

from penstock.errors import ConfigError


def spark_part(name: str) -> ModuleType:
    """`penstock.spark.<name>`."""
    try:
        return import_module(f"penstock.spark.{name}")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] == "penstock":
            raise
        raise ConfigError(
            f"{error.name} is not installed, which pipelines need: pip install 'penstock[spark]'"
        ) from error
