"""Profiles: named sets of broker settings, which every other source overrides."""

from collections.abc import Mapping

from penstock.errors import ConfigError

CLASSIC: Mapping[str, str] = {
    "message.max.bytes": "1000000",
    "replica.lag.time.max.ms": "10000",
    "unclean.leader.election.enable": "true",
}
"""Values from older Kafka documentation, where Kafka 4 has other defaults."""

PROFILES: Mapping[str, Mapping[str, str]] = {"classic": CLASSIC}


def profile(name: str) -> Mapping[str, str]:
    if name not in PROFILES:
        raise ConfigError(f"profile {name!r} is unknown, must be one of {', '.join(PROFILES)}")
    return PROFILES[name]
