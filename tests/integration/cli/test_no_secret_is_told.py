"""Secrets of every kind pass through a broker, and none appears in a log, a file or an output."""

import gzip
import tarfile
from base64 import b64encode
from pathlib import Path

from click.testing import CliRunner, Result

from peers.penstock import PenstockBroker
from penstock.cli.main import main
from support.security.certificates import certified, pkcs12
from support.security.tokens import own_key_set, token

MODULES = "org.apache.kafka.common.security"
PROVIDERS = "org.apache.kafka.common.config.provider"
CANARIES = {
    name: f"canary-{name}-7f3a9c"
    for name in ("store", "plain", "scram", "wrong", "hmac", "program", "unused")
}


class Stage:
    """A broker with secrets in its settings, and commands that log in to it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.reported, self.address = folder, [""], ""

    def run(self, *words: str, given: str | None = None, login: str = "") -> Result:
        settings = self.folder / "client.properties"
        settings.write_text(login)
        words = (*words, "--command-config", str(settings), "-b", self.address)
        done = CliRunner().invoke(main, words, input=given)
        self.reported += [done.output, str(done.exception or "")]
        return done

    def login(self, mechanism: str, user: str, password: str, more: str = "") -> str:
        kind = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        jaas = f'{MODULES}.{kind} required username="{user}" password="{password}"{more};'
        return f"{self.secured(mechanism)}sasl.jaas.config={jaas}\n"

    def secured(self, mechanism: str) -> str:
        trusted = f"ssl.truststore.location={self.folder / 'broker.cert.pem'}\n"
        return f"security.protocol=SASL_SSL\n{trusted}sasl.mechanism={mechanism}\n"


def settings_of(folder: Path) -> Path:
    keys = certified(folder, "broker")
    store = pkcs12(keys, CANARIES["store"])
    (folder / "jwks.json").write_bytes(own_key_set())
    secrets = folder / "secrets.properties"
    secrets.write_text(f"store={CANARIES['store']}\nhmac={CANARIES['hmac']}\n")
    printed = folder / "printed"
    printed.write_text(f"#!/bin/sh\necho {CANARIES['program']}\n")
    printed.chmod(0o700)
    login = f'{MODULES}.plain.PlainLoginModule required user_admin="{CANARIES["plain"]}";'
    file = folder / "server.properties"
    file.write_text(
        "config.providers=file,cmd\n"
        f"config.providers.file.class={PROVIDERS}.FileConfigProvider\n"
        "config.providers.cmd.class=penstock.CommandConfigProvider\n"
        f"config.providers.cmd.param.allowed.commands={printed}\n"
        "listeners=SASL_SSL://127.0.0.1:0\n"
        "security.inter.broker.protocol=SASL_SSL\n"
        f"ssl.keystore.location={store}\n"
        f"ssl.keystore.password=${{file:{secrets}:store}}\n"
        f"ssl.key.password=${{cmd:{printed}:x}}\n"
        f"ssl.truststore.password={CANARIES['unused']}\n"
        f"delegation.token.secret.key=${{file:{secrets}:hmac}}\n"
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512,OAUTHBEARER\n"
        f"listener.name.sasl_ssl.plain.sasl.jaas.config={login}\n"
        f"sasl.oauthbearer.jwks.endpoint.url={(folder / 'jwks.json').as_uri()}\n"
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
        "super.users=User:admin\n"
        "connection.failed.authentication.delay.ms=1\n"
    )
    return file


def test_no_secret_is_in_a_log_a_file_or_an_output(tmp_path: Path) -> None:
    file = settings_of(tmp_path)
    stage, bearer = Stage(tmp_path), token("alice")
    (tmp_path / "token.jwt").write_text(bearer)
    log = tmp_path / "run" / "penstock.log"
    log.parent.mkdir()
    logged = ("--log-level=debug", f"--log-file={log}")
    options = (str(file), "--set=listeners=SASL_SSL://127.0.0.1:0", *logged)
    with PenstockBroker(*options, folder=tmp_path / "run", timeout_s=60) as broker:
        stage.address = broker.bootstrap
        admin = stage.login("PLAIN", "admin", CANARIES["plain"])
        password = f"{CANARIES['scram']}\n" * 2
        created = stage.run("user", "create", "bob", given=password, login=admin)
        assert created.exit_code == 0, created.output
        bob = stage.login("SCRAM-SHA-512", "bob", CANARIES["scram"])
        assert stage.run("topic", "list", login=bob).exit_code == 0
        made = stage.run("token", "create", "--format", "json", login=bob)
        assert made.exit_code == 0, made.output
        stage.reported.remove(made.output)  # only the command that creates a token prints it
        url = f"sasl.oauthbearer.token.endpoint.url={(tmp_path / 'token.jwt').as_uri()}\n"
        alice = stage.secured("OAUTHBEARER") + url
        assert stage.run("topic", "list", login=alice).exit_code == 0
        for mechanism in ("PLAIN", "SCRAM-SHA-512"):
            wrong = stage.login(mechanism, "admin", CANARIES["wrong"])
            assert stage.run("topic", "list", login=wrong).exit_code == 4
        assert stage.run("broker", "config", "1", "--format", "json", login=admin).exit_code == 0
        stage.run("doctor", login=admin)
        bundle = tmp_path / "bundle.tar.gz"
        bundled = stage.run(
            "bundle", "-o", str(bundle), "--log-dir", str(tmp_path / "run"), login=admin
        )
        assert bundled.exit_code == 0, bundled.output
    hmac = made.output.partition('"hmac":')[2].split('"')[1]
    assert len(hmac) > 40
    searched = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    searched[Path("answers")] = "\n".join(stage.reported).encode()
    with tarfile.open(fileobj=gzip.open(bundle)) as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            searched[Path("bundle", member.name)] = b"" if content is None else content.read()
    assert b"failed login" in searched[log]
    for name, secret in {**CANARIES, "token": bearer, "token's HMAC": hmac}.items():
        forms = (secret.encode(), b64encode(secret.encode())[:-4], secret.encode().hex().encode())
        holders = [str(path) for path, data in searched.items() if any(f in data for f in forms)]
        assert holders == [], f"the secret {name} is in {holders}"
