"""Which brokers new replicas are placed on."""

import pytest

from penstock.controller.cordoned import check_cordoned, placeable
from penstock.errors import InvalidRequest
from penstock.metadata.image import Broker, ClusterImage, ImageDelta
from penstock.types import BrokerId


@pytest.mark.parametrize(
    ("started_with", "altered", "is_placeable"),
    [
        ((), None, True),
        (("/a",), None, True),
        (("/b", "/a"), None, False),
        (("*",), None, False),
        ((), "/a, /b", False),
        ((), "/a", True),
        ((), "*", False),
        (("*",), "", True),
        (("*",), "/b", True),
    ],
)
def test_a_broker_with_all_directories_cordoned_gets_no_new_replicas(
    started_with: tuple[str, ...], altered: str | None, *, is_placeable: bool
) -> None:
    image = image_of(
        Broker(BrokerId(1), 5, (), log_dirs=("/a", "/b"), cordoned_log_dirs=started_with), altered
    )
    assert (BrokerId(1) in placeable(image)) is is_placeable


def test_a_kafka_broker_counts_as_not_cordoned() -> None:
    assert BrokerId(1) in placeable(image_of(Broker(BrokerId(1), 5, ()), "/a"))


def test_a_misspelt_directory_is_refused_where_the_directories_are_known() -> None:
    known = Broker(BrokerId(1), 5, (), log_dirs=("/a", "/b"))
    for text in ("", "*", "/a", "/b,/a"):
        check_cordoned(known, {"cordoned.log.dirs": text})
    misspelt = {"cordoned.log.dirs": "/a,/c"}
    with pytest.raises(InvalidRequest, match=r"/c is not among log\.dirs, which are /a, /b"):
        check_cordoned(known, misspelt)
    check_cordoned(Broker(BrokerId(1), 5, ()), misspelt)
    check_cordoned(None, misspelt)


def image_of(broker: Broker, altered: str | None) -> ClusterImage:
    configs = {} if altered is None else {"cordoned.log.dirs": altered}
    return ClusterImage().apply(
        ImageDelta(brokers={broker.id: broker}, broker_configs={broker.id: configs})
    )
