"""Routes in a file."""

import pytest

from penstock.config.delay_route import DelayRoute, RetryRoute
from penstock.config.route_file import parse_routes
from penstock.errors import ConfigError

GOOD = """
# comment
[later]
penstock.delay.to = orders
penstock.delay.ms=5000

[ orders-again ]
penstock.retry.to=orders
penstock.retry.backoff = exponential(1s,2,10m,jitter=0.2)
; another
"""


def test_sections_are_topics_with_their_settings() -> None:
    routes = parse_routes(GOOD, "f")
    later, again = routes["later"], routes["orders-again"]
    assert isinstance(later, DelayRoute)
    assert (later.to, later.default_ms) == ("orders", 5000)
    assert isinstance(again, RetryRoute)
    assert (again.to, again.dead_letters) == ("orders", "orders-again.dlq")


def test_an_empty_file_has_no_routes() -> None:
    assert parse_routes("", "f") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a\n", "f, line 1: '[a' is not a section"),
        ("[]\n", "f, line 1: '[]' is not a section"),
        ("[a]\nto orders\n", "f, line 2: 'to orders' is not a setting"),
        ("\npenstock.delay.to=b\n", "f, line 2: penstock.delay.to stands before"),
        ("[a]\ndelay.to=b\n", "f, line 2: delay.to is unknown; there are penstock.delay.to,"),
        ("[a]\npenstock.delay.ms=5000\n", "f, line 1: topic a needs penstock.delay.to or"),
        (
            "[a]\npenstock.delay.to=b\npenstock.delay.to=c\n",
            "f, line 3: penstock.delay.to is in line 2 already",
        ),
        ("[a]\npenstock.delay.to=b\n[a]\n", "f, line 3: topic a is in line 1 already"),
        (
            "[a]\n\npenstock.retry.to=b\npenstock.retry.backoff=soon\n",
            "f, line 4: penstock.retry.backoff: 'soon' is not a duration",
        ),
        ("[a]\npenstock.delay.to=a\n", "f, line 2: penstock.delay.to names the topic itself"),
        ("[a]\npenstock.delay.to=__b\n", "f, line 2: penstock.delay.to: '__b' is a topic of"),
        (
            "[a]\npenstock.delay.to=b\npenstock.retry.to=b\n",
            "f, line 2: penstock.delay.to and penstock.retry.to exclude each other",
        ),
    ],
)
def test_errors_name_file_line_and_setting(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_routes(text, "f")
    assert str(raised.value).startswith(message)
