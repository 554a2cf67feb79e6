"""Log directories that get no new partitions (KIP-1066)."""

from pathlib import Path

from penstock.config.identity import EVERY_LOG_DIR, IdentityConfig
from penstock.errors import ConfigError


def is_cordoned(config: IdentityConfig, path: Path) -> bool:
    listed = config.cordoned_log_dirs
    return EVERY_LOG_DIR in listed or any(Path(each).absolute() == path for each in listed)


def check_cordoned(config: IdentityConfig) -> None:
    """Refuse a directory that is not in `log.dirs`: a misspelt one would still get partitions."""
    known = {Path(each).absolute() for each in config.directories}
    for each in config.cordoned_log_dirs:
        if each != EVERY_LOG_DIR and Path(each).absolute() not in known:
            listed = ", ".join(config.directories)
            raise ConfigError(
                f"cordoned.log.dirs: {each} is not among log.dirs, which are {listed}"
            )
