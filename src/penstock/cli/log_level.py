"""The levels of logging that commands take."""

LEVELS = ("debug", "info", "warn", "warning", "error", "critical")
