"""`penstock registry user` prints lines that the registry and the console accept."""

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.http.access import password_matches
from penstock.http.users import Role, parse_users


def test_the_password_is_read_from_standard_input() -> None:
    done = CliRunner().invoke(main, ["registry", "user", "ada", "--role", "admin"], input="pw\n")
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    found, digest = parse_users(done.stdout, "users.txt").passwords["ada"]
    assert found.role is Role.ADMIN
    assert password_matches(digest, "pw")


@pytest.mark.parametrize("given", ["", "\n"])
def test_an_empty_password_is_refused(given: str) -> None:
    done = CliRunner().invoke(main, ["registry", "user", "ada"], input=given)
    assert done.exit_code != 0
    assert done.stdout == ""
