"""Bad input of any kind ends in one sentence and the right exit code, never in a traceback.

Each row is a call. The files and the broker that a call needs are prepared in its folder.
"""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.failure import ExitCode
from penstock.cli.main import main
from penstock.clock import SystemClock
from penstock.metadata.store import Create
from penstock.metadata.tree import FILE_NAME, Tree
from penstock.testing.broker import EmbeddedBroker
from support.security.certificates import certified, pkcs12

EMPTY_BACKUP = (
    '{"format":"penstock-metadata","schema_version":1,"zxid":1,"nodes":1}\n'
    '{"path":"/","version":0,"created_zxid":0,"modified_zxid":0,"created_ms":0,'
    '"children_created":0}\n'
)
IN_USE = "cannot listen on 127.0.0.1:TAKEN: Address already in use"
FAILED, USAGE, UNREACHABLE = ExitCode.FAILED, ExitCode.USAGE, ExitCode.UNREACHABLE


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.bootstrap


@pytest.fixture
def taken() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield str(sock.getsockname()[1])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a file, an empty folder, and malformed files."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "meta.properties").write_text("version=0\nbroker.id=0\n")
    (tmp_path / "junk.toml").write_text("= [")
    (tmp_path / "junk.properties").write_text("num.partitions=many\n")
    (tmp_path / "bad-escape.properties").write_text("a=\\u12\n")
    (tmp_path / "locked" / "metadata.sqlite.lock").mkdir(parents=True)
    (tmp_path / "twice.yaml").write_text("broker.id: 1\nbroker.id: 2\n")
    (tmp_path / "torn.yaml").write_text("log:\n  dirs: [a\n")
    (tmp_path / "junk.jsonl").write_text("{\n")
    (tmp_path / "gap.jsonl").write_text(" \n")
    (tmp_path / "backup").write_text(EMPTY_BACKUP)
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\n")
    (tmp_path / "misspelt.jsonl").write_text('{"key": "k", "vlaue": "v"}\n')
    (tmp_path / "misdated.jsonl").write_text('{"value": "v", "timestamp": "soon"}\n')
    for name, content in {"torn": '{"workers"', "none": '{"workers": 0}'}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "workers.json").write_text(content)
    broken = tmp_path / "broken-cluster"
    broken.mkdir()
    (broken / "cluster.json").write_text("{")
    partition = tmp_path / "logs" / "t-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020d}.log").write_bytes(b"\x00" * 100)
    (tmp_path / "logs" / "meta.properties").write_text("version=9\n")
    (tmp_path / "machine" / "logs" / "worker.0" / "t-0").mkdir(parents=True)
    (tmp_path / "machine" / "broker.lock").write_bytes(b"")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "metadata.sqlite").write_bytes(b"no database" * 1000)
    monkeypatch.chdir(tmp_path)
    return tmp_path


SERVE = [
    (("--port", "99999"), "99999"),
    (("--port", "-1"), "-1"),
    (("--port", "many"), "many"),
    (("--log-level", "loud"), "'loud' is not one of"),
    (("--log-format", "xml"), "xml"),
    (("--log-file", "empty"), "empty"),
    (("--log-file", "file/x.log"), "Not a directory"),
    (("--profile", "modern"), "modern"),
    (("nothing.properties",), "nothing.properties"),
    (("empty",), "empty"),
    (("junk.toml",), "junk.toml"),
    (("junk.properties",), "junk.properties:1"),
    (("bad-escape.properties",), "bad-escape.properties"),
    (("--set", "num.partitions"), "must be name=value"),
    (("--set", "=1"), "must be name=value"),
    (("--set", "num.partitions=0"), "num.partitions is '0'"),
    (("--set", "nonsense=1", "--strict"), "nonsense"),
    (("--set", "authorizer.class.name=X"), "authorizer.class.name is 'X', but classes cannot be"),
    (
        (
            "--set=authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
            "--set=super.users=admin",
        ),
        "super.users: 'admin' must be type:name",
    ),
    (("--set", "listeners=SSL://127.0.0.1:0"), "set security.inter.broker.protocol to"),
    (
        ("--set=listeners=SSL://127.0.0.1:0", "--set=security.inter.broker.protocol=SSL"),
        "listener SSL speaks SSL, but there is no ssl.keystore.location",
    ),
    (
        (
            "--set=listeners=SSL://127.0.0.1:0",
            "--set=security.inter.broker.protocol=SSL",
            "--set=ssl.keystore.location=junk.toml",
        ),
        "ssl.keystore.location: junk.toml is neither PEM nor PKCS12",
    ),
    (
        (
            "--set=listeners=SSL://127.0.0.1:0",
            "--set=security.inter.broker.protocol=SSL",
            "--set=ssl.principal.mapping.rules=RULE:x",
        ),
        "ssl.principal.mapping.rules: 'RULE:x' must be DEFAULT",
    ),
    (
        (
            "--set=listeners=SASL_PLAINTEXT://127.0.0.1:0",
            "--set=security.inter.broker.protocol=SASL_PLAINTEXT",
            "--set=sasl.enabled.mechanisms=PLAIN",
        ),
        "listener.name.sasl_plaintext.plain.sasl.jaas.config names no users",
    ),
    (
        (
            "--set=listeners=PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
            "--set=listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
        ),
        "sasl.enabled.mechanisms has GSSAPI, but Kerberos is not supported",
    ),
    (
        (
            "--set=listeners=SSL://127.0.0.1:0",
            "--set=security.inter.broker.protocol=SSL",
            "--set=zookeeper.connect=127.0.0.1:1",
        ),
        "listener SSL speaks SSL, but there is no ssl.keystore.location",
    ),
    (
        (
            "--workers=2",
            "--set=authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
            "--set=super.users=User:admin",
        ),
        "workers connect to each other as User:ANONYMOUS, which ACLs would refuse",
    ),
    (
        ("--set=listener.name.plain_text.ssl.client.auth=required",),
        "is for a listener that is not there; listeners has PLAINTEXT",
    ),
    (("--set", "listeners=nonsense"), "must be name://host:port"),
    (("--set", "penstock.http.listen=here"), "must be host:port"),
    (("--set", "penstock.http.listen=127.0.0.1:99999"), "must be host:port"),
    (("--set", "penstock.http.listen=127.0.0.1:TAKEN"), "Address already in use"),
    (("--dir", "kafka"), "--dir kafka is a log directory of another broker"),
    (("--set", "penstock.http.listen=host.invalid:0"), "host.invalid"),
    (("--set", "log.dirs=file"), "log.dirs"),
    (
        ("--set", "log.dirs=/proc/penstock"),
        "penstock: log.dirs: no directory can be used: /proc/penstock: No such file or directory",
    ),
    (("twice.yaml",), "twice.yaml: line 2: broker.id is there twice, first on line 1"),
    (("torn.yaml",), "torn.yaml: line 3: not YAML: "),
    (("--dir", "torn"), "torn/workers.json is damaged (Input data was truncated): restore it, or"),
    (("--dir", "none"), "none/workers.json is damaged (Expected `int` >= 1 - at `$.workers`): "),
    (("--set", "broker.id=-5"), "--set: broker.id is '-5'"),
    (("--set", "zookeeper.set.acl=true"), "zookeeper.set.acl"),
    (("--set", "zookeeper.connect=nonsense:port"), "zookeeper.connect"),
    (("--host", "host.invalid"), "host.invalid"),
    (("--host", "0.0.0.0"), "advertised.listeners=PLAINTEXT://HOST:"),
    (("--host", "127.0.0.1", "--port", "TAKEN"), "Address already in use"),
    (("--dir", ""), "must not be empty"),
    (("--dir", "file"), "file"),
    (("--dir", "file/data"), "Not a directory"),
    (("--dir", "/proc/penstock"), "/proc/penstock"),
    (("--dir", "/proc/penstock", "--daemon"), "/proc/penstock"),
    (("--dir", "a,b"), "a comma separates them"),
    (("--dir", "machine/logs"), "has logs of the data directory HERE/machine: start with --dir"),
    (("--dir", "machine/logs/worker.0/t-0"), "has logs of the data directory HERE/machine: start"),
    (("--set", "log.dirs=x,y,x"), "log.dirs names x twice"),
    (
        ("--set", "log.dirs=x,y", "--set", "cordoned.log.dirs=y,z"),
        "cordoned.log.dirs: z is not among log.dirs, which are x, y",
    ),
    (("--set", "replica.selector.class=a.Mine"), "replica.selector.class is 'a.Mine', must be"),
    (("--set", "penstock.registry.listen=127.0.0.1:TAKEN"), f"penstock.registry.listen: {IN_USE}"),
    (
        ("--set=penstock.rest.listen=127.0.0.1:TAKEN", "--set=penstock.rest.token=none"),
        f"penstock.rest.listen: {IN_USE}",
    ),
    (("--daemon", "--set=penstock.registry.listen=127.0.0.1:TAKEN"), "penstock.registry.listen:"),
    (("--nonsense",), "--nonsense"),
    (("one", "two"), "one"),
]


STARTED_S = 30
"""A broker that starts by mistake would never end, and it handles signals, so pytest's timeout
would not stop it.
"""


@pytest.mark.parametrize(("words", "reported"), SERVE, ids=[" ".join(words) for words, _ in SERVE])
def test_a_broker_does_not_start(
    words: tuple[str, ...], reported: str, folder: Path, taken: str
) -> None:
    before = sorted((folder / "machine").rglob("*"))
    stop = threading.Timer(STARTED_S, partial(os.kill, os.getpid(), signal.SIGTERM))
    stop.start()
    given = [word.replace("TAKEN", taken) for word in words]
    default = [] if "--port" in words or "listeners" in "".join(words) else ["--port", "0"]
    try:
        ends_in_a_sentence(
            ["serve", *default, *given],
            USAGE,
            reported.replace("HERE", str(folder)).replace("TAKEN", taken),
        )
        assert sorted((folder / "machine").rglob("*")) == before
    finally:
        stop.cancel()
        stop.join()


ON_TLS = ("--set=listeners=SSL://127.0.0.1:0", "--set=security.inter.broker.protocol=SSL")
ON_SASL = (
    "--set=listeners=SASL_PLAINTEXT://127.0.0.1:0",
    "--set=security.inter.broker.protocol=SASL_PLAINTEXT",
)
UNPROTECTED = {
    "a keystore with a wrong password": (
        *ON_TLS,
        "--set=ssl.keystore.location=broker.p12",
        "--set=ssl.keystore.password=wrong",
    ),
    "a mechanism without users": (*ON_SASL, "--set=sasl.enabled.mechanisms=PLAIN"),
    "a rule that does not parse": (*ON_TLS, "--set=ssl.principal.mapping.rules=RULE:x"),
    "another authorizer": ("--set=authorizer.class.name=X",),
    "users without a type": (
        "--set=authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
        "--set=super.users=admin",
    ),
}


@pytest.mark.parametrize("what", UNPROTECTED)
@pytest.mark.parametrize("way", [(), ("--daemon",)], ids=["here", "daemon"])
def test_a_broker_with_unusable_security_settings_leaves_nothing_behind(
    what: str, way: tuple[str, ...], folder: Path
) -> None:
    keys = certified(folder, "broker")
    pkcs12(keys, "right").rename("broker.p12")
    result = CliRunner().invoke(main, ["serve", "--dir", "unmade", *UNPROTECTED[what], *way])
    assert result.exit_code == USAGE
    (line,) = result.output.splitlines()
    assert line.startswith("penstock: ")
    assert not (folder / "unmade").exists()


OTHERS: list[tuple[str, ExitCode, str]] = [
    ("frobnicate", USAGE, "No such command 'frobnicate'"),
    ("tpoic list", USAGE, "Did you mean 'topic'?"),
    ("topic lst", USAGE, "lst"),
    ("serve --port 0 --set log.dirs=logs", FAILED, "meta.properties"),
    ("serve --port 0 --dir locked", FAILED, "locked/metadata.sqlite.lock: Is a directory"),
    (
        "serve --port 0 --dir damaged",
        FAILED,
        "damaged/metadata.sqlite: file is not a database; it is damaged: move it away",
    ),
    ("config describe -b B broker 99", USAGE, "broker 99 is not up; there are 1"),
    ("config set -b B broker 99 log.cleaner.threads=2", USAGE, "broker 99 is not up; there are 1"),
    ("config unset -b B broker 99 log.cleaner.threads", USAGE, "broker 99 is not up"),
    ("config diff -b B broker 1 99", USAGE, "broker 99 is not up; there are 1"),
    ("logs --dir empty --level nonsense", USAGE, "'nonsense' is not one of 'debug', 'info',"),
    ("plan -t t --messages 1 --size 1 --retention 1d", USAGE, "--topic needs --from-cluster"),
    ("log adopt .", USAGE, ". is not a log directory: it has no meta.properties; name kafka, logs"),
    ("log adopt machine/logs", USAGE, "its workers have: name machine/logs/worker.0 and so on"),
    ("stop --dir ''", USAGE, "must not be empty"),
    ("topic list --dir ''", USAGE, "must not be empty"),
    ("metadata export --dir ''", USAGE, "must not be empty"),
    ("cluster status --dir ''", USAGE, "must not be empty"),
    ("stop --dir empty", USAGE, "no broker runs here"),
    ("stop --dir nowhere", USAGE, "no broker runs here"),
    ("stop --dir file", USAGE, "file"),
    ("stop --timeout -1", USAGE, "-1"),
    ("stop --timeout nan", USAGE, "--timeout"),
    ("topic list --dir empty", USAGE, "no broker runs here"),
    ("topic list -b :::", USAGE, "is not host:port"),
    ("topic list -b 127.0.0.1:99999", USAGE, "is not host:port"),
    ("topic list -b 127.0.0.1:1", UNREACHABLE, "start a broker with `penstock serve`"),
    ("topic list -b host.invalid:9092", UNREACHABLE, "host.invalid:9092"),
    ("topic list -b 127.0.0.1:TAKEN --timeout 0.2", UNREACHABLE, "127.0.0.1:TAKEN"),
    ("topic list --timeout 0", USAGE, "--timeout"),
    ("topic list --timeout nan", USAGE, "--timeout"),
    ("topic list --timeout inf", USAGE, "--timeout"),
    ("topic list --timeout 1e300", USAGE, "--timeout"),
    ("topic create -b B t -p 0", USAGE, "-p"),
    ("topic create -b B t -p 2147483648", USAGE, "-p"),
    ("topic create -b B t -r 32768", USAGE, "-r"),
    ("topic create -b B t -c nonsense", USAGE, "NAME=VALUE"),
    ("topic create -b B t -c retention.ms=1 -c retention.ms=2", USAGE, "retention.ms is given"),
    ("topic create -b B t -c no.such=1", FAILED, "INVALID_CONFIG"),
    ("topic create -b B t -r 3", FAILED, "INVALID_REPLICATION_FACTOR"),
    ("topic create -b B a/b", FAILED, "INVALID_TOPIC_EXCEPTION"),
    ("topic describe -b B missing", FAILED, "UNKNOWN_TOPIC_OR_PARTITION"),
    ("topic describe -b B ''", FAILED, "topic '': INVALID_TOPIC_EXCEPTION"),
    ("topic delete -b B missing", FAILED, "UNKNOWN_TOPIC_OR_PARTITION"),
    ("topic alter -b B missing", USAGE, "nothing to alter"),
    ("topic alter -b B missing -p 3", FAILED, "UNKNOWN_TOPIC_OR_PARTITION"),
    ("topic alter -b B t -p 2147483648", USAGE, "-p"),
    ("topic alter -b B t -c retention.ms=1 --unset retention.ms", USAGE, "both name retention.ms"),
    ("group describe -b B missing", FAILED, "missing"),
    ("group delete -b B missing", FAILED, "missing"),
    ("group reset -b B missing --to soon", USAGE, "is not an offset"),
    ("group reset -b B missing --to end -t missing", FAILED, "UNKNOWN_TOPIC_OR_PARTITION"),
    ("produce -b B '' file", USAGE, "TOPIC"),
    ("produce -b B missing file", FAILED, "UNKNOWN_TOPIC_OR_PARTITION"),
    ("produce -b B missing nowhere", USAGE, "nowhere"),
    ("produce -b B missing empty", USAGE, "empty"),
    ("produce -b B missing file -k \udcff", USAGE, "is not UTF-8"),
    ("produce -b B missing file -H n=\udcff", USAGE, "is not UTF-8"),
    ("consume -b B \udcff", USAGE, "is not UTF-8"),
    ("topic create -b B \udcff", USAGE, "is not UTF-8"),
    ("group describe -b B \udcff", USAGE, "is not UTF-8"),
    ("produce -b B missing junk.jsonl -i json", USAGE, "line 1"),
    ("produce -b B missing bytes.jsonl -i json", USAGE, "line 1"),
    ("produce -b B missing gap.jsonl -i json", USAGE, "line 1: it is empty, must be a JSON object"),
    ("produce -b B missing file -s :", USAGE, "line 1"),
    ("produce -b B missing misspelt.jsonl -i json", USAGE, "unknown field `vlaue`"),
    ("produce -b B missing misdated.jsonl -i json", USAGE, "'soon' is not a time"),
    ("produce -b B missing file -t yesterday", USAGE, "is not a time"),
    ("produce -b B missing file -t 1969-12-31", USAGE, "before 1970"),
    ("produce -b B missing file -t -999999999999d", USAGE, "before 1970"),
    ("produce -b B missing file -p 2147483648", USAGE, "-p"),
    ("produce -b B missing file -H nonsense", USAGE, "NAME=VALUE"),
    ("consume -b 127.0.0.1:1 t", UNREACHABLE, "start a broker with `penstock serve`"),
    ("produce -b 127.0.0.1:1 t file", UNREACHABLE, "start a broker with `penstock serve`"),
    ("consume -b B missing", FAILED, "UNKNOWN_TOPIC_OR_PARTITION"),
    ("consume -b B ''", USAGE, "TOPIC"),
    ("consume -b B missing -p 2147483648", USAGE, "-p"),
    ("consume -b B missing -o @1969-12-31T23:59:59.999Z", USAGE, "before 1970"),
    ("consume -b B missing -o soon", USAGE, "is not an offset"),
    ("consume -b B missing -f -u end", USAGE, "--until"),
    ("consume -b B -r missing-.* -g g", USAGE, "--regex: it matches no topic"),
    ("partition describe -b B missing", FAILED, "missing"),
    ("partition describe -b B missing --watch nan", USAGE, "--watch"),
    ("log dump nowhere.log", FAILED, "nowhere.log: No such file or directory"),
    ("log dump empty", FAILED, "empty: Is a directory"),
    ("log dump file", FAILED, "file"),
    ("log verify nowhere", USAGE, "nowhere"),
    ("log verify file", USAGE, "file"),
    ("log verify empty", USAGE, "no partition"),
    ("log verify .", USAGE, "did you mean logs?"),
    ("log verify machine", USAGE, "a folder, such as machine/logs/worker.0"),
    ("log verify machine/logs", USAGE, "a folder, such as machine/logs/worker.0"),
    ("log adopt nowhere", USAGE, "nowhere"),
    ("log adopt file", USAGE, "file"),
    ("log adopt logs", FAILED, "meta.properties"),
    ("metadata export --dir nowhere", USAGE, "nowhere"),
    ("metadata export --dir empty", USAGE, "empty"),
    ("metadata import --dir locked backup", FAILED, "metadata.sqlite.lock: Is a directory"),
    ("metadata import --dir /proc/penstock backup", USAGE, "--dir /proc/penstock: No such file"),
    ("metadata import --dir file/x backup", USAGE, "--dir file/x: Not a directory"),
    ("metadata import --dir empty junk.jsonl", USAGE, "not a backup"),
    ("metadata import --dir empty bytes.jsonl", USAGE, "not a backup"),
    ("metadata import --dir empty nowhere", USAGE, "nowhere"),
    ("cluster status --dir empty", USAGE, "no cluster was started there"),
    ("cluster stop --dir empty", USAGE, "no cluster was started there"),
    ("cluster status --dir broken-cluster", USAGE, "cluster.json"),
    ("cluster start --dir file", USAGE, "file"),
    ("cluster start --dir c --set num.partitions=many", USAGE, "num.partitions"),
    ("cluster start --dir c --set nonsense", USAGE, "nonsense"),
    ("cluster start --dir c --chroot x", USAGE, "--chroot"),
    ("cluster start --dir c --zookeeper :::", USAGE, ":::"),
    ("cluster start --brokers 0", USAGE, "--brokers"),
    ("lab nonsense", USAGE, "nonsense"),
    ("rest serve -b B", USAGE, "--no-token turns it off, on loopback only"),
    ("rest serve -b B --no-token --listen :0", USAGE, "--no-token is for loopback only"),
    ("rest serve -b B --no-token --listen 127.0.0.1:TAKEN", USAGE, f"--listen: {IN_USE}"),
    ("registry serve -b B --listen 127.0.0.1:TAKEN", USAGE, f"--listen: {IN_USE}"),
    ("delay serve -b B --http-listen 127.0.0.1:TAKEN", USAGE, f"--http-listen: {IN_USE}"),
    ("console -b B --listen 127.0.0.1:TAKEN", USAGE, f"--listen: {IN_USE}"),
]


@pytest.mark.parametrize(
    ("words", "code", "reported"), OTHERS, ids=[ascii(each[0]) for each in OTHERS]
)
def test_a_command_is_refused(
    words: str, code: ExitCode, reported: str, folder: Path, taken: str, bootstrap: str
) -> None:
    del folder
    meant = {"''": "", "B": bootstrap}
    given = [meant.get(word, word.replace("TAKEN", taken)) for word in words.split()]
    ends_in_a_sentence(given, code, reported.replace("TAKEN", taken))


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("/feature", "restore it, or delete it"),
        ("/controller_epoch", "set it to a number greater than the controller_epoch in the state"),
        ("/controller", "delete it, and the brokers elect a controller"),
        ("/cluster/id", "restore it: a broker's meta.properties has the cluster.id"),
    ],
)
def test_a_malformed_node_that_prevents_the_start_is_named_with_its_remedy(
    tmp_path: Path, path: str, remedy: str
) -> None:
    with closing(Tree.open(tmp_path / FILE_NAME, SystemClock())) as tree:
        nodes = [Create("/cluster"), Create(path, b"gar\xffbage")]
        assert tree.apply(tree.open_session(), [nodes if "cluster" in path else nodes[1:]])
    reported = f"{path}: does not hold what belongs there, but 'gar\\xffbage'; {remedy}"
    ends_in_a_sentence(["serve", "--port", "0", "--dir", str(tmp_path)], FAILED, reported)


def test_a_damaged_batch_is_named_with_its_partition(tmp_path: Path) -> None:
    with EmbeddedBroker(directory=tmp_path) as broker:
        run = partial(CliRunner().invoke, main)
        made = run(["produce", "-b", broker.bootstrap, "--create-topic", "t"], input="value\n")
        assert made.exit_code == 0, made.output
        segment = tmp_path / "logs" / "t-0" / f"{0:020d}.log"
        segment.write_bytes(segment.read_bytes().replace(b"value", b"volue"))
        words = ["consume", "-b", broker.bootstrap, "t"]
        ends_in_a_sentence(words, FAILED, "t-0: the CRC of the batch at offset 0 is wrong")


@pytest.mark.parametrize(
    "words",
    [
        "serve --port 0",
        "serve --port 0 --daemon",
        "serve p.properties",
        "stop",
        "topic list --dir d",
        "produce t file",
        "metadata export",
        "metadata import file",
        "log dump 00000000000000000000.log",
        "log verify .",
        "log adopt d",
        "log forget d",
        "cluster start",
        "cluster status",
        "cluster stop",
        "pipeline init .",
        "pipeline init p",
        "pipeline validate",
        "pipeline run",
        "pipeline status",
        "pipeline stop",
        "pipeline pack p.zip",
    ],
)
def test_a_deleted_working_directory_is_an_error(words: str, tmp_path: Path) -> None:
    here = Path.cwd()
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        ends_in_a_sentence(words.split(), FAILED, "the working directory was deleted")
    finally:
        os.chdir(here)


def ends_in_a_sentence(words: list[str], code: ExitCode, reported: str) -> None:
    result = CliRunner().invoke(main, words)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    shown = result.stderr.strip().splitlines()
    sentences = [line for line in shown if line.startswith(("penstock: ", "Error: "))]
    assert len(sentences) == 1, result.stderr
    assert shown[-1] == sentences[0]
    assert not any(line.startswith(("consumed ", "produced ")) for line in shown[:-1])
    assert reported in sentences[0]
    assert "internal error" not in result.stderr
    assert "Traceback" not in result.output
