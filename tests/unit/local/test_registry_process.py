"""A broker does not start with settings that its registry cannot start with."""

from pathlib import Path

import pytest

from penstock.config.services import ServicesConfig
from penstock.errors import ConfigError
from penstock.local.registry_process import check_registry


@pytest.mark.parametrize(
    ("listen", "users", "refusal"),
    [
        ("127.0.0.1:0", "missing", r"/missing: No such file or directory$"),
        ("127.0.0.1:0", "empty", "names no user, so nobody could log in$"),
        ("0.0.0.0:0", "", r"^penstock\.registry\.listen is 0\.0\.0\.0, which other machines reach"),
    ],
)
def test_a_registry_open_to_everybody_or_usable_by_nobody_is_refused(
    tmp_path: Path, listen: str, users: str, refusal: str
) -> None:
    (tmp_path / "empty").write_text("")
    file = str(tmp_path / users) if users else ""
    config = ServicesConfig(penstock_registry_listen=listen, penstock_registry_users=file)
    with pytest.raises(ConfigError, match=refusal):
        check_registry(config)


def test_without_a_listen_address_the_registry_settings_are_not_checked() -> None:
    check_registry(ServicesConfig(penstock_registry_users="missing"))
