"""`penstock bundle`: diagnostics in one file, without secrets and without records."""

import io
import json
import platform
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from penstock import __version__
from penstock.advice.cluster_checks import cluster_findings
from penstock.advice.snapshot import ClusterSnapshot, cluster_snapshot
from penstock.cli.daemon import LOG_NAME
from penstock.cli.directory import DirectoryType
from penstock.cli.frame.command import Verb
from penstock.cli.log_files import log_files
from penstock.cli.output import FORMAT, print_json
from penstock.cli.redaction import redacted_settings, redacted_text
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.client.configs import ConfigSource, Resource, describe_configs
from penstock.clock import SystemClock
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ConfigError, KafkaError

LAST_BYTES = 1 << 20


@click.command(cls=Verb, example="penstock bundle --output penstock-bundle.tar.gz")
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("penstock-bundle.tar.gz"),
    show_default=True,
    help="The file to write.",
)
@click.option("--log-dir", type=DirectoryType(exists=True), help="Add the logs of this folder.")
@FORMAT
@remote
def bundle(remote: Remote, path: Path, log_dir: Path | None, output: str) -> None:
    """Write diagnostics to a file: cluster, topics, settings, groups, findings, the log's end.

    Secrets in settings and logs are hidden; there are no records in it.
    """
    now_ms = SystemClock().now_ms()

    async def work(client: Client) -> tuple[ClusterSnapshot, dict[str, Any]]:
        seen = await cluster_snapshot(client, now_ms)
        return seen, await settings(client, seen)

    seen, configs = remote.run(work)
    files = {
        "versions.json": {
            "penstock": __version__,
            "python": sys.version,
            "platform": platform.platform(),
        },
        "client.json": redacted_settings(remote.settings),
        "cluster.json": msgspec.to_builtins(seen.cluster, str_keys=True),
        "topics.json": [topic(each) for each in seen.topics],
        "settings.json": configs,
        "groups.json": [group(each) for each in seen.groups],
        "findings.json": [msgspec.to_builtins(each) for each in cluster_findings(seen)],
    }
    texts = {name: json.dumps(value, indent=1, default=str) for name, value in files.items()}
    if log_dir is not None:
        logs = log_files(log_dir)
        if not logs:
            raise ConfigError(f"--log-dir: {log_dir / LOG_NAME} does not exist")
        texts |= {each.name: redacted_text(end_of(each)) for each in logs}
    write(path, texts, now_ms)
    if output == "json":
        print_json({"file": str(path), "contents": list(texts)})
    else:
        click.echo(f"wrote {path}: {', '.join(texts)}")


async def settings(client: Client, seen: ClusterSnapshot) -> dict[str, Any]:
    """Settings of brokers and topics other than defaults. Brokers never send sensitive values."""
    found: dict[str, Any] = {}
    names = [(ConfigResourceType.BROKER, str(each)) for each in seen.cluster.brokers]
    names += [(ConfigResourceType.TOPIC, each.name) for each in seen.topics]
    for kind, name in names:
        try:
            entries = await describe_configs(client, Resource(kind, name))
        except KafkaError as error:
            found[f"{kind.name.lower()} {name}"] = {"error": str(error)}
            continue
        found[f"{kind.name.lower()} {name}"] = redacted_settings(
            {
                each.name: each.value or ""
                for each in entries.values()
                if each.source is not ConfigSource.DEFAULT_CONFIG
            }
        )
    return found


def topic(each: Any) -> dict[str, Any]:
    return {
        "name": each.name,
        "partitions": [
            {
                "partition": part.index,
                "leader": part.leader,
                "replicas": list(part.replicas),
                "isr": list(part.isr),
            }
            for part in each.partitions.values()
        ],
    }


def group(each: Any) -> dict[str, Any]:
    return {
        "id": each.group.id,
        "state": each.group.state,
        "members": len(each.group.members),
        "lag": {f"{tp.topic}-{tp.partition}": lag for tp, lag in each.lags.items()},
    }


def end_of(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - LAST_BYTES, 0))
        return file.read().decode(errors="replace")


def write(path: Path, texts: Mapping[str, str], now_ms: int) -> None:
    new = path.with_name(f"{path.name}.part")
    try:
        with tarfile.open(new, "w:gz") as archive:
            for name, text in texts.items():
                data = text.encode()
                entry = tarfile.TarInfo(f"penstock-bundle/{name}")
                entry.size, entry.mtime, entry.mode = len(data), now_ms // 1000, 0o600
                archive.addfile(entry, io.BytesIO(data))
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise ConfigError(f"--output {path}: {error.strerror}") from None
