"""Where our defaults differ from librdkafka's."""

from typing import Any

import pytest

from penstock.sdk.producer import Producer


@pytest.mark.parametrize(
    "settings",
    [
        {"acks": 1},
        {"max.in.flight": 10},
        {"max.in.flight.requests.per.connection": "10"},
        {"queuing.strategy": "lifo"},
    ],
    ids=str,
)
def test_idempotence_is_disabled_by_settings_that_exclude_it(settings: dict[str, Any]) -> None:
    """librdkafka would refuse to create the producer."""
    made: Producer[bytes, bytes] = Producer(
        {"bootstrap.servers": "127.0.0.1:1", "log_level": 0, **settings}
    )
    made.close()
