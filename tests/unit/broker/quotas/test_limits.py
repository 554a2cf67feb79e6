"""Which limit applies: that of the most specific entity, users before client ids."""

import pytest

from penstock.broker.quotas.client_quotas import MOST_CHARS, MOST_CLIENTS, TypeQuota
from penstock.broker.quotas.limits import Limit, Limits, QuotaType, bound_of
from penstock.config.value import INT_MAX
from penstock.metadata.client_entity import DEFAULT, ClientEntity, entity_at, path_of
from support.brokers.few_services import few_services

IN_ORDER = (
    (ClientEntity("alice", "app"), ("alice", "app")),
    (ClientEntity("alice", DEFAULT), ("alice", "app")),
    (ClientEntity("alice"), ("alice", "")),
    (ClientEntity(DEFAULT, "app"), ("alice", "app")),
    (ClientEntity(DEFAULT, DEFAULT), ("alice", "app")),
    (ClientEntity(DEFAULT), ("alice", "")),
    (ClientEntity(None, "app"), ("", "app")),
    (ClientEntity(None, DEFAULT), ("", "app")),
)


@pytest.mark.parametrize("first", range(len(IN_ORDER)))
def test_the_most_specific_existing_limit_applies(first: int) -> None:
    others = {
        ClientEntity("bob"): {"producer_byte_rate": "1"},
        ClientEntity(None, "other"): {"producer_byte_rate": "1"},
        ClientEntity("alice", "other"): {"producer_byte_rate": "1"},
    }
    given = {
        entity: {"producer_byte_rate": str(10 + number)}
        for number, (entity, _) in enumerate(IN_ORDER)
        if number >= first
    }
    limits = Limits(QuotaType.PRODUCE, {**others, **given})
    assert limits.of_client("alice", "app") == Limit(10.0 + first, *IN_ORDER[first][1])


def test_an_entity_applies_only_to_the_quota_types_it_limits() -> None:
    given = {
        ClientEntity("alice"): {"consumer_byte_rate": "5"},
        ClientEntity(None, "app"): {"producer_byte_rate": "7"},
    }
    assert Limits(QuotaType.PRODUCE, given).of_client("alice", "app") == Limit(7, "", "app")
    assert Limits(QuotaType.REQUEST, given).of_client("alice", "app") is None


@pytest.mark.parametrize("kind", QuotaType)
def test_a_limit_may_be_the_largest_number_there_is(kind: QuotaType) -> None:
    """As what stands for no limit: Java's Double.MAX_VALUE."""
    quotas = few_services({ClientEntity("alice"): {kind: "1.7976931348623157E308"}}).quotas
    assert quotas.is_on is (kind is not QuotaType.CONNECTION)
    now_ms = quotas.monotonic_ms()
    assert quotas.most_fetched("alice", "app") in {None, INT_MAX * 10}
    assert quotas.produce_ms("alice", "app", 1 << 20, now_ms) == 0
    assert quotas.request_ms("alice", "app", 1 << 20, now_ms) == 0
    assert quotas.fetch_ms("alice", "app", 1 << 20) == 0
    meter = quotas.mutation.meter("alice", "app", now_ms)
    if meter is not None:
        meter.bucket.take(1000, meter.bound, now_ms)
        assert meter.bucket.throttle_ms(meter.bound, now_ms) == 0


def test_addresses_have_a_default_too() -> None:
    key = "connection_creation_rate"
    limits = Limits(
        QuotaType.CONNECTION,
        {ClientEntity(ip="10.0.0.1"): {key: "5"}, ClientEntity(ip=DEFAULT): {key: "9"}},
    )
    assert limits.of_address("10.0.0.1") == 5
    assert limits.of_address("10.0.0.2") == 9
    assert Limits(QuotaType.CONNECTION, {}).of_address("10.0.0.2") is None


def test_an_address_may_be_written_as_in_java() -> None:
    given = {ClientEntity(ip="0:0:0:0:0:0:0:1"): {"connection_creation_rate": "5"}}
    assert Limits(QuotaType.CONNECTION, given).of_address("::1") == 5


@pytest.mark.parametrize(
    ("text", "bound"), [(None, None), ("x", None), ("0", None), ("-1", None), ("nan", None),
                        ("inf", None), ("12.5", 12.5), ("1024", 1024.0)]
)  # fmt: skip
def test_an_unusable_limit_counts_as_no_limit(text: str | None, bound: float | None) -> None:
    assert bound_of(text) == bound


@pytest.mark.parametrize(
    "entity",
    [
        *(entity for entity, _ in IN_ORDER),
        ClientEntity("CN=a/b,O=~", "ü <default>"),
        ClientEntity(ip="::1"),
        ClientEntity(ip=DEFAULT),
    ],
)
def test_an_entity_is_found_again_by_its_path(entity: ClientEntity) -> None:
    assert entity_at(path_of(entity)) == entity


def test_client_ids_made_up_by_clients_do_not_fill_the_memory() -> None:
    quota = TypeQuota(QuotaType.PRODUCE, 11, 1)
    given = {ClientEntity(None, DEFAULT): {"producer_byte_rate": "1"}}
    quota.use(Limits(QuotaType.PRODUCE, given))
    for number in range(MOST_CLIENTS * 2):
        quota.meter("u", f"client {number}", number)
    assert len(quota.meters) <= MOST_CLIENTS


def test_many_long_client_ids_in_use_do_not_fill_the_memory() -> None:
    quota = TypeQuota(QuotaType.PRODUCE, 11, 1)
    given = {ClientEntity(None, DEFAULT): {"producer_byte_rate": "1"}}
    quota.use(Limits(QuotaType.PRODUCE, given))
    for number in range(MOST_CLIENTS + 10):
        meter = quota.meter("u", f"{number:08}{'x' * MOST_CHARS * 2}", 0)
        assert meter is not None
        meter.throttle_ms(1, 0)
    names = [client_id for _, client_id in quota.meters]
    assert len(names) == MOST_CLIENTS + 1, "those beyond share one, so that they are limited too"
    assert max(map(len, names)) == MOST_CHARS
    assert quota.meter("u", "honest", 500) is quota.meters["", ""]
    later_ms = 12_000  # the other meters have been idle since
    own = quota.meter("u", "honest", later_ms)
    assert own is quota.meters["", "honest"]
    assert own is quota.meter("u", "honest", later_ms), "and keeps it"


def test_a_quota_for_a_long_client_id_applies() -> None:
    quota, name = TypeQuota(QuotaType.PRODUCE, 11, 1), "x" * MOST_CHARS * 2
    given = {ClientEntity(None, name): {"producer_byte_rate": "7"}}
    quota.use(Limits(QuotaType.PRODUCE, given))
    meter = quota.meter("u", name, 0)
    assert meter is not None
    assert meter.bound == 7
    assert quota.meter("u", name, 0) is meter
    assert quota.meter("u", name + "y", 0) is None


def test_a_new_limit_keeps_the_recorded_usage() -> None:
    quota = TypeQuota(QuotaType.PRODUCE, 11, 1)
    entity = ClientEntity("alice")
    quota.use(Limits(QuotaType.PRODUCE, {entity: {"producer_byte_rate": "1000"}}))
    meter = quota.meter("alice", "a", 0)
    assert meter is not None
    assert meter.throttle_ms(15_000, 0) == 5_000
    quota.use(Limits(QuotaType.PRODUCE, {entity: {"producer_byte_rate": "1500"}}))
    assert quota.meter("alice", "b", 0) is meter
    assert meter.throttle_ms(0, 0) == 0
    quota.use(Limits(QuotaType.PRODUCE, {}))
    assert quota.meter("alice", "a", 0) is None
    quota.use(Limits(QuotaType.PRODUCE, {entity: {"producer_byte_rate": "1000"}}))
    assert quota.meter("alice", "a", 0) is meter, "a quota set again finds what was used"
