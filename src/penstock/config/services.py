"""Services beside the broker: processes that use it as clients do."""

from dataclasses import dataclass
from pathlib import Path

from penstock.config.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicesConfig:
    """Services beside the broker, such as the one that delivers delayed records."""

    penstock_services_config: str = setting(
        "penstock.services.config",
        "",
        "Client settings by which services beside the broker log in, in properties syntax, such as "
        "security.protocol. Without it they use a PLAINTEXT listener, or are not started.",
    )

    def client_file(self) -> Path | None:
        return Path(self.penstock_services_config) if self.penstock_services_config else None
