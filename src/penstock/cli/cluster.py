"""`penstock cluster`: runs brokers and a ZooKeeper on this machine; rebalances any cluster."""

from collections.abc import Mapping
from pathlib import Path

import click

from penstock.cli.cluster_health import health, info
from penstock.cli.directory import DirectoryType
from penstock.cli.failure import ExitCode
from penstock.cli.frame.command import Noun
from penstock.cli.frame.terminal import warn
from penstock.cli.output import FORMAT, is_data, print_json
from penstock.cli.rebalance import rebalance
from penstock.config.connect_string import ConnectString
from penstock.errors import ConfigError
from penstock.local.cluster import ClusterPlan, LocalCluster
from penstock.local.ports import free_ports

DIRECTORY = click.option(
    "--dir",
    "directory",
    type=DirectoryType(),
    default=Path("penstock-cluster"),
    show_default=True,
    help="Directory of the cluster.",
)


@click.group(cls=Noun)
def cluster() -> None:
    """Run a cluster on this machine; show, check and rebalance any cluster."""


cluster.add_command(info)
cluster.add_command(health)
cluster.add_command(rebalance)


@cluster.command("start", example="penstock cluster start --brokers 3 --dir /tmp/demo")
@click.option("--brokers", type=click.IntRange(1, 200), default=3, show_default=True)
@click.option(
    "--port",
    type=click.IntRange(1, 65000),
    default=9092,
    show_default=True,
    help="Port of the first broker; the others use the next ones.",
)
@DIRECTORY
@click.option("--chroot", default="", help="Path of the cluster's nodes in ZooKeeper.")
@click.option("--zookeeper", "given", help="HOST:PORT[/CHROOT] of a running ZooKeeper.")
@click.option(
    "--own-addresses",
    is_flag=True,
    help="A loopback address for each broker: 127.0.0.11, .12 and so on.",
)
@click.option(
    "--set", "pairs", multiple=True, metavar="KEY=VALUE", help="A setting of all brokers."
)
def start(
    brokers: int,
    port: int,
    directory: Path,
    chroot: str,
    given: str | None,
    own_addresses: bool,
    pairs: tuple[str, ...],
) -> None:
    """Start a cluster, or the stopped brokers of one that was started in DIR before.

    For an existing cluster, a higher --brokers adds brokers, and --set applies to brokers that
    start from now on. When all brokers are ready it prints one JSON object: bootstrap, zookeeper,
    pids.
    """
    found = LocalCluster.find(directory)
    is_new = found is None
    if found is None:
        plan = planned(brokers, port, chroot, given, own_addresses=own_addresses, pairs=pairs)
        found = LocalCluster.create(directory, plan)
    else:
        settings = dict(setting(pair) for pair in pairs)
        check_unchanged(found, {"port": port, "chroot": chroot, "given": given})
        found.change(brokers=brokers if is_given("brokers") else None, settings=settings)
    for warning in found.warnings():
        warn(warning)
    try:
        found.start()
    except BaseException:
        if is_new:
            found.forget()
        raise
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


def check_unchanged(found: LocalCluster, given: Mapping[str, object]) -> None:
    """Reject options that an existing cluster cannot change, instead of ignoring them."""
    plan = found.plan
    known: dict[str, tuple[object, ...]] = {
        "port": (plan.port,),
        "chroot": (plan.chroot,),
        "given": (plan.connect, plan.zookeeper),
    }
    for name, value in given.items():
        if is_given(name) and value not in known[name]:
            option = "zookeeper" if name == "given" else name
            raise ConfigError(
                f"--{option} {value}: the cluster in {found.directory} was created with "
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
        raise ConfigError(f"--chroot {chroot}: must begin with a slash")
    if given is not None:
        zookeeper = ConnectString.parse(given)
        if chroot and zookeeper.chroot:
            raise ConfigError("--chroot: --zookeeper names one already")
        address, own_port, chroot = zookeeper.addresses, None, chroot or zookeeper.chroot
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


@cluster.command("stop", example="penstock cluster stop --dir /tmp/demo")
@DIRECTORY
@click.option("--broker", type=int, help="Only this broker.")
@click.option("--kill", is_flag=True, help="Use SIGKILL, as in a crash.")
def stop(directory: Path, broker: int | None, kill: bool) -> None:
    """Stop a cluster, or one of its brokers; keeps the data."""
    existing(directory).stop(broker, kill=kill)
    if is_data():
        print_json({"directory": str(directory), "broker": broker, "stopped": True})


@cluster.command("status", example="penstock cluster status --dir /tmp/demo")
@DIRECTORY
@FORMAT
def status(directory: Path, output: str) -> None:
    """Show which processes of a cluster run. The exit code is 1 if one is down."""
    found = existing(directory)
    pids = found.pids()
    down = [each for each in range(found.plan.brokers) if each not in pids]
    own_zookeeper = found.plan.zookeeper_port is not None
    if output == "json":
        row = {
            "bootstrap": found.plan.bootstrap,
            "zookeeper": found.plan.connect,
            "zookeeper_pid": found.zookeeper_pid,
            "pids": {str(broker): pid for broker, pid in pids.items()},
            "down": down,
        }
        print_json(row)
    else:
        state = (found.zookeeper_pid or "down") if own_zookeeper else "external"
        print(f"ZooKeeper  {found.plan.connect:<24} {state}")
        for broker in range(found.plan.brokers):
            print(f"broker {broker:<3} {found.plan.address(broker):<24} {pids.get(broker, 'down')}")
    if down or (own_zookeeper and found.zookeeper_pid is None):
        raise SystemExit(ExitCode.FAILED)


def existing(directory: Path) -> LocalCluster:
    found = LocalCluster.find(directory)
    if found is None:
        raise ConfigError(f"--dir {directory}: no cluster was started there")
    return found
