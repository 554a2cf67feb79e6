"""Calls about share groups, in order: the first reset creates the group."""

from tool_table.call import Call


def _groups(arguments: str) -> Call:
    return Call("kafka-share-groups", arguments)


RESET = "--reset-offsets --group g"
READ = "--topic u --group s --timeout-ms 15000 --formatter-property print.delivery=true"


def _read(arguments: str) -> Call:
    return Call("kafka-console-share-consumer", f"{READ} {arguments}")


SHARE_GROUP_CALLS = [
    Call("kafka-topics", "--create --topic t --partitions 2"),
    Call("kafka-topics", "--create --topic u --partitions 1"),
    _groups("--list"),
    _groups(f"{RESET} --topic t --to-earliest --dry-run"),
    _groups(f"{RESET} --topic t --to-earliest --execute"),
    _groups(f"{RESET} --topic t:1 --to-latest --dry-run"),
    _groups(f"{RESET} --all-topics --to-latest --dry-run"),
    _groups(f"{RESET} --topic u --to-datetime 2020-01-01T00:00:00.000 --execute"),
    _groups(f"{RESET} --topic t --to-datetime bad --dry-run"),
    _groups(f"{RESET} --topic none --to-earliest --dry-run"),
    _groups(f"{RESET} --topic t:7 --to-earliest --dry-run"),
    _groups(f"{RESET} --topic t --to-earliest"),
    _groups("--list"),
    _groups("--list --state"),
    _groups("--list --state Stable,dead"),
    _groups("--describe --group g"),
    _groups("--describe --all-groups --offsets --verbose"),
    _groups("--describe --group g --members"),
    _groups("--describe --group g --state"),
    _groups("--describe --group g --state --verbose"),
    _groups("--describe --group none"),
    _groups("--delete-offsets --group g --topic u --topic none"),
    _groups("--delete-offsets --group none --topic t"),
    _groups("--describe --group g"),
    _groups("--delete --group g --group none"),
    _groups("--delete --all-groups"),
    Call("kafka-console-producer", "--topic u", stdin="one\ntwo\nthree\n"),
    _groups("--reset-offsets --group s --topic u --to-earliest --execute"),
    _read("--max-messages 2 --release"),
    _read("--max-messages 1 --reject"),
    _read("--max-messages 1 --formatter-property print.offset=true"),
    _read("--reject --release"),
    Call("kafka-console-share-consumer", "--topic u --group s --command-property group.id=x"),
    _groups("--describe --group s"),
    # There are no consumer groups.
    *(
        Call("kafka-consumer-groups", each)
        for each in ("--list", "--describe --all-groups", "--delete --all-groups")
    ),
    _groups("--list"),
]
