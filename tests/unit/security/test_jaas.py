"""Login configurations as Kafka's documentation writes them."""

import pytest

from penstock.errors import ConfigError
from penstock.security.jaas import parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
NAME = "listener.name.sasl_ssl.plain.sasl.jaas.config"


def test_users_differ_from_the_brokers_own_login() -> None:
    text = f"""{PLAIN} required
      // the broker itself
      username="admin" password="admin-secret"
      user_admin="admin-secret" /* and others */
      user_alice="it\\"s; a = secret" user_bob=plain;
    """
    found = parse_jaas(NAME, text, "PLAIN")
    assert found.users() == {
        "admin": "admin-secret",
        "alice": 'it"s; a = secret',
        "bob": "plain",
    }
    assert found.options["username"] == "admin"
    assert "secret" not in repr(found)


def test_a_module_without_options_is_read() -> None:
    assert parse_jaas(NAME, f"{SCRAM} required;", "SCRAM-SHA-512").users() == {}


@pytest.mark.parametrize(
    ("text", "mechanism", "says"),
    [
        ("", "PLAIN", "must begin with"),
        ('com.evil.Module required user_a="canary";', "PLAIN", "must begin with"),
        (f"{PLAIN} required;", "SCRAM-SHA-256", "PlainLoginModule is not for SCRAM-SHA-256"),
        (f'{PLAIN} user_a="canary";', "PLAIN", "'required' must follow"),
        (f'{PLAIN} required user_a="canary"', "PLAIN", "end with a semicolon"),
        (f'{PLAIN} required user_a="canary"; {SCRAM} required;', "PLAIN", "one login module"),
        (f'{PLAIN} required user_a="canary;', "PLAIN", "a quote is not closed"),
        (f"{PLAIN} required user_a canary;", "PLAIN", 'option 1 must be name="value"'),
        (f"{PLAIN} required user_a=canary user_a=canary;", "PLAIN", "option 2 is there twice"),
    ],
)
def test_an_error_names_the_setting_and_shows_no_secret(
    text: str, mechanism: str, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_jaas(NAME, text, mechanism)
    assert str(caught.value).startswith(NAME)
    assert says in str(caught.value)
    assert "canary" not in str(caught.value)
