"""`kafka-dump-log.sh`, formerly `DumpLogSegments`: prints the contents of log files."""

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.kafka_tools.options import Option, Table, Takes, flag, number, text
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.tool import Tool

if TYPE_CHECKING:
    from penstock.log.inspection.row import Row

DECODERS = {
    "offsets-decoder": "__consumer_offsets",
    "transaction-log-decoder": "__transaction_state",
    "share-group-state-decoder": "__share_group_state",
    "cluster-metadata-decoder": "__cluster_metadata",
}
OPTIONS = (
    text("files", "FILE,...", "The files to dump, separated by commas.", required=True),
    flag("print-data-log", "Also print keys and values.", also=("print-data-logs",)),
    flag("deep-iteration", "Print every record."),
    flag("verify-index-only", "Only verify indexes."),
    flag("index-sanity-check", "Only check that indexes are sane."),
    flag("skip-record-metadata", "Of records print only keys and values."),
    *(flag(name, f"Decode records of {topic}.") for name, topic in DECODERS.items()),
    number("max-message-size", "BYTES", "Accepted, without effect.", default=5_242_880),
    number("max-bytes", "BYTES", "Accepted; files are read whole.", default=2_147_483_647),
    Option("key-decoder-class", "Accepted; keys are text.", Takes.OPTIONAL, "CLASS"),
    Option("value-decoder-class", "Accepted; values are text.", Takes.OPTIONAL, "CLASS"),
)


def _line(row: "Row", *, contents_only: bool) -> str:
    from penstock.log.inspection.row import Row, RowKind

    if not contents_only or row.kind is not RowKind.RECORD:
        return row.text
    contents = {name: text for name, text in row.values.items() if name in {"key", "payload"}}
    return Row(row.kind, contents).text if contents else ""


def dump_files(args: Arguments) -> int:
    from penstock.cli.decoders import decoder_for
    from penstock.log.disk import DiskFiles
    from penstock.log.inspection.dump import DumpOptions, dump
    from penstock.log.inspection.row import RowKind

    args.require("files")
    topic = next((DECODERS[name] for name in args.given(DECODERS)), None)
    shown = decoder_for(topic) if topic or args.has("print-data-log") else None
    options = DumpOptions(deep=shown is not None or args.has("deep-iteration"), decoder=shown)
    quiet = args.has("verify-index-only", "index-sanity-check")
    code = 0
    for name in args.text("files").split(","):
        path = Path(name.strip())
        path.open("rb").close()  # raises for a wrong name
        print(f"Dumping {path}")
        problems = 0
        for row in dump(DiskFiles(), path, options):
            is_problem = row.kind is RowKind.PROBLEM
            problems += is_problem
            if is_problem or not quiet:
                print(_line(row, contents_only=args.has("skip-record-metadata")))
        if quiet and not problems and path.suffix in {".index", ".timeindex"}:
            print(f"{path} passed sanity check.")
        code = 1 if problems else code
    return code


TOOL = Tool(
    Table(
        "kafka-dump-log",
        "This tool helps to parse a log file and dump its contents to the console, useful for "
        "debugging a seemingly corrupt log segment.",
        OPTIONS,
    ),
    dump_files,
)
