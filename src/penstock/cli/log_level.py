"""The log levels that commands accept."""

LEVELS = ("debug", "info", "warn", "warning", "error", "critical")
