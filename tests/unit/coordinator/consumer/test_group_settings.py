"""The settings of a group of the consumer protocol, and their effects."""

import pytest

from penstock.config.consumer_group import (
    ConsumerGroupConfig,
    check_group_config,
    effective_group_config,
    group_defaults,
)
from penstock.config.group import GroupConfig
from penstock.coordinator.group.consumer.group import ConsumerGroupState
from penstock.errors import ConfigError
from support.groups.consumer_members import CONFIG, Cluster, Consumer, settle

WIDE = GroupConfig(
    group_consumer_min_session_timeout_ms=1,
    group_consumer_max_heartbeat_interval_ms=50_000,
)


def test_settings_missing_in_a_group_come_from_the_broker() -> None:
    broker = GroupConfig(group_consumer_session_timeout_ms=50_000)
    found = effective_group_config({"consumer.heartbeat.interval.ms": "7000"}, broker)
    assert found == ConsumerGroupConfig(
        consumer_session_timeout_ms=50_000,
        consumer_heartbeat_interval_ms=7000,
        consumer_assignment_interval_ms=1000,
    )


def test_a_value_outside_of_narrowed_limits_is_clamped() -> None:
    given = {"consumer.session.timeout.ms": "1000", "consumer.heartbeat.interval.ms": "99000"}
    found = effective_group_config(given, GroupConfig())
    assert found.consumer_session_timeout_ms == 45_000
    assert found.consumer_heartbeat_interval_ms == 15_000


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"consumer.session.timeout.ms": "44999"}, "group.consumer.min.session.timeout.ms"),
        ({"consumer.session.timeout.ms": "60001"}, "group.consumer.max.session.timeout.ms"),
        ({"consumer.heartbeat.interval.ms": "4999"}, "group.consumer.min.heartbeat.interval.ms"),
        ({"consumer.assignment.interval.ms": "15001"}, "group.consumer.max.assignment.interval.ms"),
        ({"consumer.assignment.interval.ms": "-1"}, "consumer.assignment.interval.ms is '-1'"),
        ({"consumer.session.timeout.ms": "soon"}, "consumer.session.timeout.ms is 'soon'"),
        ({"no.such": "1"}, "Unknown group config name: no.such"),
    ],
)
def test_a_value_outside_of_the_limits_of_the_broker_is_refused(
    given: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        check_group_config(given, GroupConfig())
    assert words in str(refused.value)


def test_the_heartbeat_interval_must_be_less_than_the_session_timeout() -> None:
    given = {"consumer.session.timeout.ms": "20000", "consumer.heartbeat.interval.ms": "20000"}
    with pytest.raises(ConfigError, match="must be less than"):
        check_group_config(given, WIDE)
    check_group_config(given | {"consumer.heartbeat.interval.ms": "19999"}, WIDE)


def test_a_new_session_timeout_and_interval_apply_from_the_next_heartbeat_on() -> None:
    now = [group_defaults(CONFIG)]
    cluster = Cluster(settings=lambda _: now[0])
    a = Consumer(cluster, "a")
    assert a.join().interval_ms == 5000
    now[0] = ConsumerGroupConfig(
        consumer_session_timeout_ms=2000, consumer_heartbeat_interval_ms=700
    )
    assert a.beat().interval_ms == 700
    cluster.pass_ms(1999)
    assert cluster.group.members
    cluster.pass_ms(1)
    assert not cluster.group.members


def test_members_that_join_within_the_assignment_interval_are_assigned_together() -> None:
    cluster = Cluster(config=GroupConfig(group_consumer_assignment_interval_ms=1000))
    a, b, c = (Consumer(cluster, name) for name in "abc")
    assert len(a.join().assignment or ()) == 4, "the first member is assigned at once"
    cluster.pass_ms(10)
    joined = b.join()
    c.join()
    assert (joined.epoch, len(joined.assignment or ())) == (2, 0)
    assert joined.interval_ms == 500
    cluster.pass_ms(989)
    a.beat()
    assert cluster.group.state is ConsumerGroupState.ASSIGNING
    assert cluster.group.target_epoch == 2
    cluster.pass_ms(1)
    a.beat()
    assert cluster.group.target_epoch == cluster.group.epoch == 4
    settle(a, b, c)
    assert sorted(len(each.has) for each in (a, b, c)) == [1, 1, 2]


def test_a_new_coordinator_assigns_at_once() -> None:
    cluster = Cluster(config=GroupConfig(group_consumer_assignment_interval_ms=1000))
    a, b = Consumer(cluster, "a"), Consumer(cluster, "b")
    a.join()
    b.join()
    cluster.start()
    a.beat()
    assert cluster.group.target_epoch == cluster.group.epoch


def test_a_regex_is_resolved_again_after_the_refresh_interval() -> None:
    cluster = Cluster(
        config=GroupConfig(
            group_consumer_assignment_interval_ms=0, group_consumer_regex_refresh_interval_ms=10_000
        )
    )
    a = Consumer(cluster, "a", topics=frozenset())
    a.join(regex="t.*")
    assert len(a.has) == 4
    # Changed in place, so that no change is noticed, as when authorizations change.
    cluster.topics["t2"] = cluster.topics.pop("t")
    cluster.pass_ms(9_999)
    a.beat()
    assert cluster.group.regexes == {"t.*": {"t"}}
    cluster.pass_ms(1)
    a.beat()
    assert cluster.group.regexes == {"t.*": {"t2"}}
