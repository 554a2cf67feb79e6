"""Thread counts that a running broker changes at most to double or half the current value.

This is Kafka's protection against typing errors; a larger change takes several steps, or a restart.
Pure.
"""

from collections.abc import Mapping

from penstock.config.broker import broker_settings
from penstock.config.setting import parse
from penstock.errors import ConfigError

GRADUAL = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)


class TooFar(ConfigError):
    """The count is too far from the current one."""

    def __init__(self, name: str, wanted: int, why: str) -> None:
        super().__init__(f"{name}={wanted} cannot be set while the broker runs: {why}")


def check_steps(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Reject counts that are too far from the current ones; both arguments are effective texts."""
    for name in GRADUAL:
        now, wanted = _count(name, before), _count(name, after)
        if wanted == now:
            continue
        if wanted < 1:
            raise TooFar(name, wanted, "it has to be at least 1")
        if wanted < now // 2:
            raise TooFar(name, wanted, f"it has to be at least half of the present {now}")
        if wanted > now * 2:
            raise TooFar(name, wanted, f"it may be at most double the present {now}")


def _count(name: str, texts: Mapping[str, str]) -> int:
    setting = broker_settings()[name]
    value = parse(setting, texts[name]) if name in texts else setting.default
    assert isinstance(value, int)
    return value
