"""Client settings by precedence, and the profiles of a user."""

from pathlib import Path

import pytest

from penstock.cli.frame.client_settings import client_settings
from penstock.cli.frame.profile_file import (
    Profiles,
    profiles_path,
    read_profiles,
    write_profiles,
)
from penstock.errors import ConfigError


def settings(
    environ: dict[str, str],
    *,
    bootstrap: str | None = None,
    pairs: tuple[str, ...] = (),
    file: Path | None = None,
    profile: str | None = None,
) -> dict[str, str]:
    return client_settings(
        bootstrap=bootstrap,
        directory=None,
        pairs=pairs,
        file=file,
        profile=profile,
        environ=environ,
    )


def test_the_nearer_source_wins(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert settings(environ)["bootstrap.servers"] == "127.0.0.1:9092"

    write_profiles(
        profiles_path(environ),
        Profiles("lab", {"lab": {"bootstrap.servers": "profile:1", "acks": "1"}}),
    )
    assert settings(environ) == {"bootstrap.servers": "profile:1", "acks": "1"}

    environ["PENSTOCK_BOOTSTRAP"] = "environment:1"
    assert settings(environ)["bootstrap.servers"] == "environment:1"

    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nacks=0\n")
    assert settings(environ, file=file) == {"bootstrap.servers": "file:1", "acks": "0"}

    pairs = ("bootstrap.servers=pair:1",)
    assert settings(environ, file=file, pairs=pairs)["bootstrap.servers"] == "pair:1"
    named = settings(environ, file=file, pairs=pairs, bootstrap="option:1")
    assert named == {"bootstrap.servers": "option:1", "acks": "0"}


def test_a_variable_names_any_setting(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PENSTOCK_CLIENT_SECURITY_PROTOCOL": "SSL"}
    assert settings(environ)["security.protocol"] == "SSL"


def test_a_profile_is_named_by_option_or_variable(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert settings(environ, profile="classic")["session.timeout.ms"] == "6000"
    assert settings({**environ, "PENSTOCK_PROFILE": "classic"})["acks"] == "1"
    with pytest.raises(ConfigError, match="profile 'clasic' is unknown; there are classic"):
        settings(environ, profile="clasic")


def test_an_empty_variable_uses_no_profile(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    write_profiles(profiles_path(environ), Profiles("classic"))
    assert settings(environ)["acks"] == "1"
    assert "acks" not in settings({**environ, "PENSTOCK_PROFILE": ""})


def test_a_folder_without_a_broker_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no broker runs here"):
        settings({"HOME": str(tmp_path)}, bootstrap=str(tmp_path))


def test_profiles_are_read_back_and_readable_by_their_user_only(tmp_path: Path) -> None:
    path = tmp_path / "penstock" / "profiles.toml"
    profiles = Profiles("a b", {"a b": {"sasl.jaas.config": 'x "required";'}, "c": {"acks": "all"}})
    write_profiles(path, profiles)
    assert read_profiles(path) == profiles
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("current = 3", "current must be the name of a profile"),
        ("profiles = 3", "profiles must be tables"),
        ("[profiles.a]\nacks = [1]", "acks of profile a must be a text"),
        ("[profiles.a", "profiles.toml: "),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "profiles.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_profiles(path)


def test_unquoted_names_and_numbers_are_settings(tmp_path: Path) -> None:
    path = tmp_path / "profiles.toml"
    path.write_text("[profiles.a]\nbootstrap.servers = 'h:1'\nlinger.ms = 5\nx = true\n")
    assert read_profiles(path).settings("a") == {
        "bootstrap.servers": "h:1",
        "linger.ms": "5",
        "x": "true",
    }


def test_built_in_profiles_cannot_be_removed() -> None:
    with pytest.raises(ConfigError, match="profile classic is built in"):
        Profiles().without("classic")
    with pytest.raises(ConfigError, match="profile 'x' is unknown"):
        Profiles().using("x")
    assert Profiles("a", {"a": {}}).without("a") == Profiles(None, {})
