"""Windows is refused: logs need locks, renames of open files and sendfile as POSIX has them."""

import sys

WHY = (
    "it does not run on Windows itself: use WSL (`wsl --install`), and install Penstock inside of "
    "it; clients on Windows reach it there"
)


def refuse_import() -> None:
    if sys.platform == "win32":
        raise ImportError(WHY)


def refuse_command() -> None:
    if sys.platform == "win32":
        sys.stderr.write(f"penstock: {WHY}\n")
        raise SystemExit(2)
