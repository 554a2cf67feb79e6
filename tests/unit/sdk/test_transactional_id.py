"""Names and sizes of transactions."""

from itertools import product

import pytest

from penstock.sdk.app import App, Guarantee
from penstock.sdk.batch_size import BatchSize
from penstock.sdk.transactions import transactional_id


def ids(group: str, topic: str, instance: str) -> list[str]:
    app = App({"bootstrap.servers": "127.0.0.1:1"}, group=group, instance=instance)
    for _ in range(2):
        app.on(topic, guarantee=Guarantee.EXACTLY_ONCE)(lambda _: None)
    return [transactional_id(group, app._instance_of(each)) for each in app._subscriptions]


def test_no_two_handlers_have_one_transactional_id() -> None:
    """Each would fence the other."""
    groups = ["shop", "shop-eu", "shop:orders/0/1", "shop:eu", "shop:eu-orders/0/1"]
    topics = ["orders", "eu-orders", "orders-0", "eu-orders-0-1"]
    instances = ["1", "0-1", "1:orders/0/1", "1%3Aorders/0/1", "0/1"]
    made = [ids(*each) for each in product(groups, topics, instances)]
    flat = [each for both in made for each in both]
    assert len(set(flat)) == len(flat)


def test_a_transactional_id_begins_with_the_groups_name_for_prefixed_acls() -> None:
    assert ids("billing", "payments", "billing-1") == [
        "billing:payments/0/billing-1",
        "billing:payments/1/billing-1",
    ]


@pytest.mark.parametrize(
    ("handled", "took_ms", "expected"),
    [(100, 1000, 50), (100, 250, 200), (500, 5, 500), (1, 60_000, 1), (5, 0, 500)],
    ids=["too slow", "quicker", "as many as may be", "one takes too long", "no time at all"],
)
def test_a_batch_is_sized_to_half_of_the_available_time(
    handled: int, took_ms: int, expected: int
) -> None:
    size = BatchSize(500, 1000)
    size.note(handled, took_ms)
    assert size.now == expected
