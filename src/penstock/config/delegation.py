"""Settings of delegation tokens."""

from dataclasses import dataclass

from penstock.config.setting import setting
from penstock.config.value import ConfigType, Password


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationConfig:
    """Delegation tokens: logins that a user hands to its programs, for a limited time."""

    delegation_token_secret_key: Password | None = setting(
        "delegation.token.secret.key",
        None,
        "The secret behind all tokens, the same on all brokers. Without it there are none.",
        kind=ConfigType.PASSWORD,
    )
    delegation_token_master_key: Password | None = setting(
        "delegation.token.master.key",
        None,
        "The old name of `delegation.token.secret.key`, which wins.",
        kind=ConfigType.PASSWORD,
    )
    delegation_token_max_lifetime_ms: int = setting(
        "delegation.token.max.lifetime.ms",
        604_800_000,
        "No token can be renewed beyond this time.",
        kind=ConfigType.LONG,
        low=1,
    )
    delegation_token_expiry_time_ms: int = setting(
        "delegation.token.expiry.time.ms",
        86_400_000,
        "How long a token lives unless it is renewed.",
        kind=ConfigType.LONG,
        low=1,
    )
    delegation_token_expiry_check_interval_ms: int = setting(
        "delegation.token.expiry.check.interval.ms",
        3_600_000,
        "How often expired tokens are removed. They end on time all the same.",
        kind=ConfigType.LONG,
        low=1,
    )

    @property
    def secret(self) -> str | None:
        """The secret key; None: tokens are disabled."""
        key = self.delegation_token_secret_key or self.delegation_token_master_key
        return (None if key is None else key.value) or None
