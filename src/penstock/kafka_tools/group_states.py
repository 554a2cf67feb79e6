"""Parses filter options of the group tools, such as `--state`."""

from collections.abc import Sequence

from penstock.kafka_tools.parser import Arguments, UsageError


def chosen(args: Arguments, option: str, valid: Sequence[str]) -> set[str]:
    """The values of `valid` that the option names, ignoring case; an empty set means all."""
    given = args.find(option)
    if not given:
        return set()
    by_lower = {each.lower(): each for each in valid}
    wanted = [each.strip().lower() for each in given.split(",")]
    if any(each not in by_lower for each in wanted):
        raise UsageError(
            f"Invalid {option} list '{given}'. Valid {option}s are: {', '.join(valid)}"
        )
    return {by_lower[each] for each in wanted}
