"""Addresses of clients as sockets write them."""

from ipaddress import ip_address


def canonical(address: str) -> str:
    """An IPv6 address in its short form; any other text as it is.

    Java, and so Kafka's ACLs, have `0:0:0:0:0:0:0:1` where sockets here have `::1`.
    """
    if ":" not in address:
        return address
    try:
        return str(ip_address(address))
    except ValueError:
        return address


def is_address(text: str) -> bool:
    """Whether a client can have it: names of hosts and networks it cannot."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
