"""`zookeeper.connect`: servers and chroot."""

import pytest

from penstock.config.connect_string import ConnectString
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("zk:2181", (("zk", 2181),), ""),
        ("zk", (("zk", 2181),), ""),
        ("zk:1/", (("zk", 1),), ""),
        ("a:1, b:2,c/myKafka", (("a", 1), ("b", 2), ("c", 2181)), "/myKafka"),
        ("a:1/one/two/", (("a", 1),), "/one/two"),
        ("[::1]:2182,127.0.0.1:1/x", (("::1", 2182), ("127.0.0.1", 1)), "/x"),
    ],
)
def test_servers_and_chroot_are_parsed(
    text: str, servers: tuple[tuple[str, int], ...], chroot: str
) -> None:
    parsed = ConnectString.parse(text)
    assert (parsed.servers, parsed.chroot) == (servers, chroot)
    assert ConnectString.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    "text", ["", "/chroot", "a:", "a:b", "a:0", "a:65536", "a,,b", "a b:1", "a:1//x", "a:1/x/../y"]
)
def test_a_malformed_connect_string_is_rejected_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.connect is .*; write host:port,host:port"):
        ConnectString.parse(text)
