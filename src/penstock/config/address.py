"""Client addresses in the form that sockets give them."""

from ipaddress import ip_address


def canonical(address: str) -> str:
    """The short form of an IPv6 address; any other text unchanged.

    Java, and so Kafka's ACLs, write `0:0:0:0:0:0:0:1` where sockets here have `::1`.
    """
    if ":" not in address:
        return address
    try:
        return str(ip_address(address))
    except ValueError:
        return address


def is_address(text: str) -> bool:
    """Whether the text is an IP address, as clients have it; not a host name or a network."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
