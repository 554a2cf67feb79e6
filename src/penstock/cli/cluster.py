"""`penstock cluster`: several brokers and a ZooKeeper on this machine; balance in any cluster."""

from collections.abc import Mapping
from pathlib import Path

import click

from penstock.cli.failure import ExitCode
from penstock.cli.output import FORMAT, print_json
from penstock.cli.rebalance import rebalance
from penstock.config.connect_string import ConnectString
from penstock.errors import ConfigError
from penstock.local.cluster import ClusterPlan, LocalCluster
from penstock.local.ports import free_ports

DIRECTORY = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("penstock-cluster"),
    show_default=True,
    help="Where everything of the cluster is kept.",
)


@click.group()
def cluster() -> None:
    """Run a cluster on this machine; spread the load of any cluster."""


cluster.add_command(rebalance)


@cluster.command("start")
@click.option("--brokers", type=click.IntRange(1, 200), default=3, show_default=True)
@click.option(
    "--port",
    type=click.IntRange(1, 65000),
    default=9092,
    show_default=True,
    help="Of the first broker; the others have those after it.",
)
@DIRECTORY
@click.option("--chroot", default="", help="Keep the cluster's nodes under this path.")
@click.option("--zookeeper", "given", help="HOST:PORT[/CHROOT] of a ZooKeeper that runs already.")
@click.option(
    "--own-addresses",
    is_flag=True,
    help="A loopback address for each broker: 127.0.0.11, .12 and so on.",
)
@click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE", help="For all brokers.")
def start(
    brokers: int,
    port: int,
    directory: Path,
    chroot: str,
    given: str | None,
    own_addresses: bool,
    pairs: tuple[str, ...],
) -> None:
    """Start a cluster, or what is down of one that was started in DIR before.

    There, more --brokers make it grow, and --set holds for brokers that start from now on. When
    all brokers are ready it prints one JSON object: bootstrap, zookeeper, pids.
    """
    found = LocalCluster.find(directory)
    if found is None:
        plan = planned(brokers, port, chroot, given, own_addresses=own_addresses, pairs=pairs)
        found = LocalCluster.create(directory, plan)
    else:
        settings = dict(setting(pair) for pair in pairs)
        refuse_what_is_settled(found, {"port": port, "chroot": chroot, "given": given})
        found.change(brokers=brokers if is_given("brokers") else None, settings=settings)
    for warning in found.warnings():
        click.echo(f"penstock: warning: {warning}", err=True)
    found.start()
    print_json(
        {
            "bootstrap": found.plan.bootstrap,
            "zookeeper": found.plan.connect,
            "pids": {str(broker): pid for broker, pid in found.pids().items()},
        }
    )


def is_given(parameter: str) -> bool:
    source = click.get_current_context().get_parameter_source(parameter)
    return source is not click.core.ParameterSource.DEFAULT


def refuse_what_is_settled(found: LocalCluster, asked: Mapping[str, object]) -> None:
    """Where a cluster is was decided when it was made: silence would pass for agreement."""
    plan = found.plan
    known: dict[str, tuple[object, ...]] = {
        "port": (plan.port,),
        "chroot": (plan.chroot,),
        "given": (plan.connect, plan.zookeeper),
    }
    for name, value in asked.items():
        if is_given(name) and value not in known[name]:
            option = "zookeeper" if name == "given" else name
            raise ConfigError(
                f"--{option} {value}: the cluster in {found.directory} was made with "
                f"{known[name][0] or 'none'}"
            )


def planned(
    brokers: int,
    port: int,
    chroot: str,
    given: str | None,
    *,
    own_addresses: bool,
    pairs: tuple[str, ...],
) -> ClusterPlan:
    settings = dict(setting(pair) for pair in pairs)
    if chroot and not chroot.startswith("/"):
        raise ConfigError(f"--chroot {chroot}: a path begins with a slash")
    if given is not None:
        where = ConnectString.parse(given)
        if chroot and where.chroot:
            raise ConfigError("--chroot: --zookeeper names one already")
        address, own_port, chroot = where.addresses, None, chroot or where.chroot
    else:
        own_port = free_ports()
        address = f"127.0.0.1:{own_port}"
        chroot = ConnectString.parse(f"{address}{chroot}").chroot
    return ClusterPlan(
        brokers=brokers,
        port=port,
        zookeeper=address,
        zookeeper_port=own_port,
        chroot=chroot,
        own_addresses=own_addresses,
        settings=settings,
    )


def setting(pair: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not equals:
        raise ConfigError(f"--set {pair}: not KEY=VALUE")
    return name, value


@cluster.command("stop")
@DIRECTORY
@click.option("--broker", type=int, help="Only this one.")
@click.option("--kill", is_flag=True, help="With SIGKILL: no goodbye, as in a crash.")
def stop(directory: Path, broker: int | None, kill: bool) -> None:
    """Stop a cluster, or one of its brokers; the data stay."""
    there(directory).stop(broker, kill=kill)


@cluster.command("status")
@DIRECTORY
@FORMAT
def status(directory: Path, output: str) -> None:
    """Show which processes of a cluster run. The exit code is 1 if one of them is down."""
    found = there(directory)
    pids = found.pids()
    down = [each for each in range(found.plan.brokers) if each not in pids]
    own_zookeeper = found.plan.zookeeper_port is not None
    if output == "json":
        told = {
            "bootstrap": found.plan.bootstrap,
            "zookeeper": found.plan.connect,
            "zookeeper_pid": found.zookeeper_pid,
            "pids": {str(broker): pid for broker, pid in pids.items()},
            "down": down,
        }
        print_json(told)
    else:
        kept = (found.zookeeper_pid or "down") if own_zookeeper else "another's"
        print(f"ZooKeeper  {found.plan.connect:<24} {kept}")
        for broker in range(found.plan.brokers):
            print(f"broker {broker:<3} {found.plan.address(broker):<24} {pids.get(broker, 'down')}")
    if down or (own_zookeeper and found.zookeeper_pid is None):
        raise SystemExit(ExitCode.FAILED)


def there(directory: Path) -> LocalCluster:
    found = LocalCluster.find(directory)
    if found is None:
        raise ConfigError(f"--dir {directory}: no cluster was started there")
    return found
