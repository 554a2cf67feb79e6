"""Calls about ACLs, tokens and client metrics, on a broker with an authorizer.

Java orders sets of ACLs by object addresses in memory, so their order is not compared. The
questions before a removal need a terminal.
"""

from tool_table.call import Call

OF_JAVA = (r".*\bexit 1\n", r"java\.lang\.\w+: .*")
"""A tool's exit, which is an exception where all tools run in one process; and stack traces."""


def _acls(arguments: str) -> Call:
    return Call("kafka-acls", arguments, in_any_order=True, but=OF_JAVA)


def _tokens(arguments: str) -> Call:
    varying = (r"\S{86}==", r"(?<![\w-])[A-Za-z0-9_-]{22}(?![\w-])", r"\d{4}-\d\d-\d\dT\d\d:\d\d")
    return Call("kafka-delegation-tokens", arguments, but=varying)


def _metrics(arguments: str) -> Call:
    return Call("kafka-client-metrics", arguments)


BOB = "--allow-principal User:bob"
ACCESS_CALLS = [
    _acls("--list"),
    _acls(
        f"--add {BOB} --allow-principal User:eve --allow-host 10.0.0.1 --operation Read --topic t"
    ),
    _acls(f"--add {BOB} --producer --topic t --topic u --transactional-id x --idempotent"),
    _acls(f"--add {BOB} --consumer --topic t --group g"),
    _acls(f"--add {BOB} --producer --consumer --topic t --group g"),
    _acls("--add --deny-principal User:mal --deny-host 10.0.0.9 --cluster"),
    _acls(f"--add {BOB} --operation AlterConfigs --topic pre --resource-pattern-type prefixed"),
    _acls(f"--add {BOB} --operation Describe --delegation-token tok"),
    _acls(f"--add {BOB} --operation CreateTokens --user-principal User:other"),
    _acls(f"--add {BOB} --operation Write --group g"),
    _acls(f"--add {BOB} --topic t --resource-pattern-type match"),
    _acls("--add --allow-principal bob --topic t"),
    _acls(f"--add {BOB} --producer --topic t --operation Read"),
    _acls("--list"),
    _acls("--list --topic t --group g --cluster"),
    _acls("--list --topic pretty --resource-pattern-type match"),
    _acls("--list --principal User:bob --principal User:mal"),
    _acls(f"--remove {BOB} --topic t --producer --force"),
    _acls("--remove --topic prefix --resource-pattern-type match --force"),
    _acls("--remove --force"),
    _acls("--list"),
    _tokens("--describe"),
    _tokens("--create --max-life-time-period -1"),
    _tokens(
        "--create --max-life-time-period 60000 --renewer-principal User:b --owner-principal User:z"
    ),
    _tokens("--create --max-life-time-period -1 --owner-principal zed"),
    _tokens("--create"),
    _tokens("--describe --owner-principal User:z --owner-principal User:none"),
    _tokens("--renew --renew-time-period -1 --hmac AAAA"),
    _tokens("--expire --hmac AAAA"),
    _metrics("--list"),
    _metrics("--alter --name m --metrics org.apache.,x. --interval 30000 --match client_id=a.*"),
    _metrics("--alter --name n --metrics *"),
    _metrics("--alter --name n --interval 5"),
    _metrics("--alter --name n --match bad"),
    _metrics("--list"),
    _metrics("--describe"),
    _metrics("--describe --name none"),
    _metrics('--alter --name m --interval "" --match ""'),
    _metrics("--describe --name m"),
    _metrics("--delete --name n"),
    _metrics("--delete --name none"),
    _metrics("--list"),
]
