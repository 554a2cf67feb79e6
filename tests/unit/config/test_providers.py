"""Config providers: values from files, folders, variables and programs, within allow lists."""

import stat
from pathlib import Path

import pytest

from penstock.config.providers import provided
from penstock.config.sources import resolve
from penstock.errors import ConfigError

KAFKA = "org.apache.kafka.common.config.provider"
CANARY = "canary-value"


def resolved(
    setting: str, kind: str, environ: dict[str, str] | None = None, **parameters: str
) -> str:
    """The resolved value of a setting for `p`, a provider of this class."""
    pairs = [
        "config.providers=p",
        f"config.providers.p.class={kind if '.' in kind else f'{KAFKA}.{kind}ConfigProvider'}",
        f"ssl.key.password={setting}",
        *(
            f"config.providers.p.param.{name.replace('_', '.')}={text}"
            for name, text in parameters.items()
        ),
    ]
    found = resolve(pairs=pairs, environ=environ or {})
    assert not found.warnings
    return found.texts()["ssl.key.password"]


def test_a_value_comes_from_a_properties_file(tmp_path: Path) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text(f"other=1\nkey.name = {CANARY}\n")
    assert resolved(f"${{p:{file}:key.name}}", "File") == CANARY
    assert resolved(f"a-${{p:{file}:other}}-b", "File", allowed_paths=str(tmp_path)) == "a-1-b"


def test_a_value_comes_from_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{CANARY}\n")
    assert resolved(f"${{p:{tmp_path}:password}}", "Directory").strip() == CANARY


def test_a_value_comes_from_the_environment() -> None:
    environ = {"MY_SECRET": CANARY}
    assert resolved("${p:MY_SECRET}", "EnvVar", environ, allowlist_pattern="MY_.*") == CANARY


def program(folder: Path, text: str) -> Path:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_value_comes_from_a_program(tmp_path: Path) -> None:
    path = program(tmp_path, f'echo "{CANARY} $1"')
    kind = "penstock.CommandConfigProvider"
    assert resolved(f"${{p:{path}:key; x}}", kind, allowed_commands=str(path)) == f"{CANARY} key; x"


def test_other_variables_stay_as_they_are() -> None:
    assert resolved("${other:x:y} $1 ${x}", "EnvVar") == "${other:x:y} $1 ${x}"


@pytest.mark.parametrize(
    ("setting", "kind", "parameters", "says"),
    [
        ("${p:FOLDER/none:k}", "File", {}, "ssl.key.password: cannot read"),
        ("${p:FOLDER/file:none}", "File", {}, "has no 'none'"),
        ("${p:/etc/passwd:root}", "File", {"allowed_paths": "FOLDER"}, "not in allowed.paths"),
        ("${p:FOLDER/../x:k}", "File", {"allowed_paths": "FOLDER"}, "not in allowed.paths"),
        ("${p:FOLDER/link:k}", "File", {"allowed_paths": "FOLDER"}, "not in allowed.paths"),
        ("x", "File", {"allowed_paths": "relative"}, "param.allowed.paths: relative must be"),
        ("${p:/etc:passwd}", "Directory", {"allowed_paths": "FOLDER"}, "not in allowed.paths"),
        ("${p:FOLDER:../x}", "Directory", {"allowed_paths": "FOLDER"}, "not the name of a file"),
        ("${p:FOLDER:link}", "Directory", {"allowed_paths": "FOLDER"}, "not in allowed.paths"),
        ("${p:NONE}", "EnvVar", {}, "the environment has no NONE"),
        ("${p:HOME}", "EnvVar", {"allowlist_pattern": "MY_.*"}, "does not match allowlist"),
        ("${p:XMY_A}", "EnvVar", {"allowlist_pattern": "MY_.*"}, "does not match allowlist"),
        ("x", "EnvVar", {"allowlist_pattern": "("}, "is not a pattern"),
        ("${p:/bin/echo:x}", "penstock.CommandConfigProvider", {}, "must list the programs"),
        (
            "${p:/bin/echo:x}",
            "penstock.CommandConfigProvider",
            {"allowed_commands": "/bin/true"},
            "/bin/echo is not in allowed.commands",
        ),
        (
            "${p:/bin/false:x}",
            "penstock.CommandConfigProvider",
            {"allowed_commands": "/bin/false"},
            "/bin/false ended with exit code 1",
        ),
        ("x", "my.own.Provider", {}, "config.providers.p.class must be one of"),
        ("x", "File", {"paths": "/"}, "config.providers.p.param.paths is not known"),
    ],
)
def test_a_missing_or_forbidden_value_stops_the_startup(
    setting: str, kind: str, parameters: dict[str, str], says: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text(f"key={CANARY}\n")
    (tmp_path / "link").symlink_to("/etc/passwd")
    given = {name: text.replace("FOLDER", str(tmp_path)) for name, text in parameters.items()}
    with pytest.raises(ConfigError) as caught:
        resolved(setting.replace("FOLDER", str(tmp_path)), kind, None, **given)
    assert says in str(caught.value)
    assert CANARY not in str(caught.value)


def test_an_error_does_not_quote_the_value() -> None:
    pairs = [
        "config.providers=e",
        f"config.providers.e.class={KAFKA}.EnvVarConfigProvider",
        "num.partitions=${e:SECRET}",
    ]
    with pytest.raises(ConfigError, match=r"num\.partitions is \[hidden\]") as caught:
        resolve(pairs=pairs, environ={"SECRET": CANARY})
    assert CANARY not in str(caught.value)


def test_a_parameter_without_its_provider_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"config\.providers\.p\.class belongs to no provider"):
        resolve(pairs=["config.providers.p.class=x"])


def test_clients_support_providers_too() -> None:
    settings = {
        "config.providers": "e",
        "config.providers.e.class": f"{KAFKA}.EnvVarConfigProvider",
        "sasl.password": "${e:SECRET}",
        "sasl.username": "u",
    }
    found = provided(settings, {"SECRET": CANARY})
    assert found == {"sasl.password": CANARY, "sasl.username": "u"}
