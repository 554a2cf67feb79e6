"""The optional libraries that the schema registry needs."""

from importlib.util import find_spec
from typing import Final

from penstock.config.extra import install
from penstock.errors import ConfigError

LIBRARIES: Final = ("avro", "google.protobuf", "grpc_tools", "jsonschema")


def check_libraries() -> None:
    """Report a missing library at start-up, not when a schema is registered.

    The libraries are not imported: a broker calls this too, before it starts the registry as a
    separate process.
    """
    for each in LIBRARIES:
        if not _is_there(each):
            raise ConfigError(f"the schema registry needs {each}: {install('registry')}")


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False
