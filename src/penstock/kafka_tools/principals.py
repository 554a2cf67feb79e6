"""Parses options that name principals, such as `User:bob`."""

from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.tool import ToolError


def principals(args: Arguments, option: str) -> list[str]:
    """The principals that an option names, without duplicates."""
    from penstock.security.principal import parse_principal  # late: `--help` does not need it

    found = []
    for each in args.all(option):
        principal = parse_principal(each.strip())
        if principal is None:
            raise ToolError(
                f"expected a string in format principalType:principalName but got {each.strip()}"
            )
        found.append(str(principal))
    return list(dict.fromkeys(found))
