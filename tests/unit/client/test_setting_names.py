"""Names of client settings, and warnings about those without effect."""

from collections.abc import Iterator, Mapping

from penstock.client.properties import group_settings, producer_settings
from penstock.client.setting_names import EFFECTIVE, WITHOUT_EFFECT, no_effect_warnings


class Asked(Mapping[str, str]):
    """A mapping without any setting that remembers which names were looked up."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def test_every_setting_that_is_read_has_an_effect() -> None:
    asked = Asked()
    group_settings(asked)
    producer_settings(asked)
    of_commands = {"bootstrap.servers", "client.id", "group.id"}
    assert asked.names | of_commands == EFFECTIVE
    assert not EFFECTIVE & WITHOUT_EFFECT


def test_settings_that_are_checked_elsewhere_cause_no_warning() -> None:
    assert not [
        *no_effect_warnings(["acks", "ssl.protocol", "penstock.delay.store", "config.providers.a"])
    ]
