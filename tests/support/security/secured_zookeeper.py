"""A ZooKeeper that requires TLS and a login, and the settings that brokers need for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from peers.process import free_ports
from peers.zookeeper import ZooKeeper
from support.security.certificates import KeyFiles, certified

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
CANARY = "canary-secret"
LOGIN = f'{MODULE} required username="kafka" password="{CANARY}";'


class Secured(NamedTuple):
    zookeeper: ZooKeeper
    secure: str
    keys: KeyFiles

    def client(self) -> dict[str, str]:
        """The settings that a broker needs besides the address."""
        return {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.truststore.location": str(self.keys.certificate),
            "penstock.zookeeper.jaas.config": LOGIN,
            "zookeeper.set.acl": "true",
        }


@contextmanager
def secured_zookeeper(folder: Path) -> Iterator[Secured]:
    keys = certified(folder, "zookeeper")
    jaas = folder / "jaas.conf"
    jaas.write_text(f'Server {{ {MODULE} required user_kafka="{CANARY}"; }};\n')
    (port,) = free_ports(1)
    settings = {
        "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "secureClientPortAddress": "127.0.0.1",
        "secureClientPort": port,
        "ssl.clientAuth": "none",
        "ssl.keyStore.location": keys.store,
        "ssl.trustStore.location": keys.certificate,
    }
    jvm = [f"-Djava.security.auth.login.config={jaas}"]
    with ZooKeeper(settings=settings, folder=folder, jvm=jvm) as zookeeper:
        yield Secured(zookeeper, f"127.0.0.1:{port}", keys)
