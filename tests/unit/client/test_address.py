"""Lists of broker addresses as users write them."""

import pytest

from penstock.client.address import Address, parse_addresses
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [Address("localhost", 9092)]),
        ("a:1, b:2,", [Address("a", 1), Address("b", 2)]),
        ("broker", [Address("broker", 9092)]),
        ("[::1]:19092", [Address("::1", 19092)]),
        ("[::1]", [Address("::1", 9092)]),
    ],
)
def test_a_list_of_brokers_is_parsed(text: str, addresses: list[Address]) -> None:
    assert parse_addresses(text) == addresses
    assert parse_addresses(",".join(map(str, addresses))) == addresses


@pytest.mark.parametrize(
    "text", ["", ",", ":9092", "a:", "a:b", "a:0", "a:65536", "::1:9092", "a:²"]
)
def test_a_malformed_address_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        parse_addresses(text)
