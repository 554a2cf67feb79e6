"""A registry without its libraries reports them at startup."""

import sys

import pytest

from penstock.config.services import ServicesConfig
from penstock.errors import ConfigError
from penstock.local.registry_process import check_registry
from penstock.registry.libraries import LIBRARIES, check_libraries


@pytest.mark.parametrize("name", LIBRARIES)
def test_an_error_names_a_missing_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_libraries()
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=f"needs {name}: pip install"):
        check_libraries()


def test_an_error_names_a_missing_part_of_a_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "google", None)
    monkeypatch.delitem(sys.modules, "google.protobuf", raising=False)
    with pytest.raises(ConfigError, match=r"needs google\.protobuf: pip install"):
        check_libraries()


def test_a_broker_with_a_registry_does_not_start_without_its_libraries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would report `ready`, and restart the registry again and again."""
    config = ServicesConfig(penstock_registry_listen="127.0.0.1:0")
    check_registry(config)
    monkeypatch.setitem(sys.modules, "avro", None)
    check_registry(ServicesConfig())
    with pytest.raises(ConfigError, match="the schema registry needs avro: pip install"):
        check_registry(config)
