"""Addresses of services are checked before anything starts."""

import socket
import time

import pytest

from penstock.config.services import ServicesConfig
from penstock.errors import ConfigError
from penstock.local.services import check_free


def test_an_address_in_use_by_another_program_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_sleep(_: float) -> None:
        raise AssertionError("it waits")

    monkeypatch.setattr(time, "sleep", no_sleep)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = on_port(taken)
        with pytest.raises(ConfigError, match=r"penstock\.registry\.listen: cannot listen on"):
            check_free(config)
    check_free(config)


def test_a_start_waits_for_the_services_of_a_killed_broker_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as left:
        monkeypatch.setattr(time, "sleep", lambda _: left.close())
        check_free(on_port(left), was_killed=True)


def on_port(sock: socket.socket) -> ServicesConfig:
    return ServicesConfig(penstock_registry_listen=f"127.0.0.1:{sock.getsockname()[1]}")
