"""What the schema registry needs beside the core's packages."""

from importlib.util import find_spec
from typing import Final

from penstock.config.extra import install
from penstock.errors import ConfigError

LIBRARIES: Final = ("avro", "google.protobuf", "grpc_tools", "jsonschema")


def check_libraries() -> None:
    """Say at the start what is missing, not when somebody registers a schema.

    Nothing is imported: a broker asks too, before it starts the registry as a process of its own.
    """
    for each in LIBRARIES:
        if not _is_there(each):
            raise ConfigError(f"the schema registry needs {each}: {install('registry')}")


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of a part's parent
        return False
