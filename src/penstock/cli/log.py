"""`penstock log`: inspects log directories without a broker."""

import asyncio
from collections import defaultdict
from pathlib import Path

import click
import msgspec

from penstock.broker.startup.adoption import adopt
from penstock.broker.startup.known_log_dirs import forget
from penstock.cli.decoders import decoder_for, known_decoder
from penstock.cli.directory import DIRECTORY, serve_command
from penstock.cli.failure import SomeFailed
from penstock.cli.frame.command import Noun
from penstock.cli.frame.terminal import note
from penstock.cli.output import FORMAT, is_data, print_json, print_result
from penstock.cli.topic_configs import CONFIGS, pairs
from penstock.counted import counted
from penstock.errors import KafkaError
from penstock.local.workers.layout import adopt_layout, read_layout
from penstock.log.disk import DiskFiles
from penstock.log.inspection.adopt import AdoptedTopics, adopted_topics
from penstock.log.inspection.dump import DumpOptions, dump
from penstock.log.inspection.report import VerificationReport
from penstock.log.inspection.row import RowKind
from penstock.log.inspection.verify import verify
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.log.naming import parse_dir_name

DIRECTORIES = click.argument(
    "directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
HOME = click.option(
    "--dir",
    "home",
    metavar="D",
    default=Path("penstock-data"),
    show_default=True,
    type=DIRECTORY,
    help="The data directory of the broker.",
)


@click.group(cls=Noun)
def log() -> None:
    """Inspect log directories of Penstock or Apache Kafka."""


@log.command(
    "dump", example="penstock log dump logs/events-0/00000000000000000000.log --print-data-log"
)
@click.argument(
    "paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--print-data-log", "print_data", is_flag=True, help="Also show keys and values.")
@click.option("--deep-iteration", "deep", is_flag=True, help="Show every record of each batch.")
@click.option(
    "--decoder",
    metavar="TOPIC",
    help="Decode keys and values of this topic: __consumer_offsets, __transaction_state, "
    "__share_group_state or __cluster_metadata. [by folder]",
)
@FORMAT
def dump_files(
    paths: tuple[Path, ...], print_data: bool, deep: bool, decoder: str | None, output: str
) -> None:
    """Print the contents of .log, .index, .timeindex, .txnindex, .snapshot and .checkpoint files.

    Indexes are compared with the .log file beside them. Lines that begin with ! report damage;
    then the exit code is 1.
    """
    damaged = False
    if decoder is not None:
        decoder, print_data = known_decoder(decoder), True
    for path in paths:
        path.open("rb").close()  # raises for a wrong name
        if output == "text":
            click.echo(f"Dumping {path}")
        shown = decoder_for(decoder or _topic_of(path)) if print_data else None
        for row in dump(DiskFiles(), path, DumpOptions(deep=deep or print_data, decoder=shown)):
            damaged |= row.kind is RowKind.PROBLEM
            if output == "text":
                click.echo(row.text)
            else:
                print_json({"file": str(path), "kind": row.kind, **row.values})
    if damaged:
        raise SystemExit(1)


def _topic_of(path: Path) -> str | None:
    parsed = parse_dir_name(path.absolute().parent.name)
    return parsed.topic_partition.topic if parsed else None


@log.command("verify", example="penstock log verify penstock-data/logs")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--deep-iteration", "deep", is_flag=True, help="Decompress and read every record.")
@FORMAT
def verify_directory(directory: Path, deep: bool, output: str) -> None:
    """Check every file of a log directory, or of one partition.

    Checks CRC and offsets of batches, indexes against batches, snapshots, aborted transactions,
    leader epochs and checkpoints. The exit code is 1 if something is damaged.
    """
    report = verify(DiskFiles(), directory, deep=deep)
    if output == "json":
        print_json(report)
    else:
        _print_report(report)
    if report.damage:
        raise SystemExit(1)


def _print_report(report: VerificationReport) -> None:
    remarks = defaultdict(list)
    for finding in report.remarks:
        remarks[finding.what].append(finding.path)
    for what, paths in remarks.items():
        such_as = "" if len(paths) == 1 else f"{len(paths)} files, such as "
        click.echo(f"  {such_as}{paths[0]}: {what}")
    for finding in report.damage:
        click.echo(f"! {finding}")
    click.echo(
        f"{counted(report.partitions, 'partition')}, {counted(report.segments, 'segment')}, "
        f"{counted(report.batches, 'batch', 'batches')}, {counted(report.records, 'record')}, "
        f"{counted(report.size_bytes, 'byte')}: "
        + (counted(len(report.damage), "damaged place") if report.damage else "no damage")
    )


@log.command("adopt", example="penstock log adopt /var/lib/kafka --dir penstock-data --dry-run")
@DIRECTORIES
@HOME
@CONFIGS
@click.option("--dry-run", is_flag=True, help="Only list what would be adopted.")
@FORMAT
def adopt_directories(
    directories: tuple[Path, ...], home: Path, configs: tuple[str, ...], dry_run: bool, output: str
) -> None:
    """Adopt the topics of log directories that Apache Kafka wrote, or whose metadata was lost.

    DIR... are all log.dirs of one stopped broker, or with --workers all their folders worker.0,
    worker.1 and so on. Their topics are registered in the data directory D, whose broker must not
    run; the last line says how to serve them. No record changes. Topic settings come from KRaft's
    log; in all other cases they are not in log directories, and topics keep all records
    (retention.ms=-1) until they have others, by --config or later.
    """
    found = adopted_topics(DiskFiles(), *directories)
    if dry_run:
        _print_adopted(found, output)
        return
    if found.are_workers:
        read_layout(home)  # refuse a damaged layout before anything changes
    outcomes = asyncio.run(adopt(home, found, pairs(configs)))
    errors = [each for each in outcomes if isinstance(each, KafkaError)]
    made = {each.topic.name for each in outcomes if not isinstance(each, KafkaError)}
    adopted = [each for each in found.topics if each.name in made]
    at = [each.absolute() for each in directories]
    if found.are_workers:
        at = adopt_layout(DiskFiles(), home, at)
    if adopted:
        _print_adopted(msgspec.structs.replace(found, topics=adopted), output)
        note(f"to serve them: {serve_command(home, at)}")
    if errors:
        raise SomeFailed(errors, len(outcomes))


@log.command("forget", example="penstock log forget /mnt/lost --dir penstock-data")
@DIRECTORIES
@HOME
def forget_directories(directories: tuple[Path, ...], home: Path) -> None:
    """Give up log directories that are lost.

    DIR... were log.dirs of the broker with data directory D, which must not run. It refuses to
    start without them; afterwards partitions that are in no other log directory are empty.
    """
    asyncio.run(forget(home, [each.absolute() for each in directories]))
    for each in directories:
        if (each / META_PROPERTIES).exists() and not is_data():
            click.echo(f"{each} is still there: a start with it in log.dirs serves its partitions")
    print_result(
        f"the broker in {home} starts without {', '.join(map(str, directories))}; partitions that "
        "are in none of its log.dirs are then empty",
        {"directory": str(home), "forgotten": [str(each) for each in directories]},
    )


def _print_adopted(adopted: AdoptedTopics, output: str) -> None:
    if output == "json":
        print_json(adopted)
        return
    brokers = ", ".join(map(str, adopted.broker_ids)) or "unknown"
    click.echo(f"cluster {adopted.cluster_id}, broker {brokers}")
    if not adopted.clean_shutdown:
        click.echo(
            "its broker did not shut down cleanly: logs will be recovered at the first start"
        )
    for topic in adopted.topics:
        partitions = ",".join(str(each.partition) for each in topic.partitions)
        configs = "".join(f" {name}={value}" for name, value in sorted(topic.configs.items()))
        click.echo(f"{topic.name} {topic.topic_id} partitions {partitions}{configs}")
    for name in adopted.ignored:
        click.echo(f"ignored: {name}")
