"""The files under deploy/ match each other and the settings and ports of a broker."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from scripts.pins import container_files

from penstock.config.sources import resolve
from penstock.errors import ConfigError

DEPLOY = Path(__file__).parents[3] / "deploy"
CONTAINERFILE = (DEPLOY / "container" / "Containerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text(encoding="utf-8"))


def documents(name: str) -> dict[str, Any]:
    text = (DEPLOY / "kubernetes" / name).read_text(encoding="utf-8")
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def environment() -> dict[str, str]:
    return {name: str(text) for name, text in COMPOSE["services"]["broker"]["environment"].items()}


def test_a_compose_file_for_kafka_is_understood_completely() -> None:
    resolved = resolve(environ=environment(), strict=True)
    assert resolved.warnings == ()
    listeners = [each.listener for each in resolved.config.listener.endpoints()]
    assert listeners == ["PLAINTEXT_HOST", "PLAINTEXT"]  # and not CONTROLLER


@pytest.mark.parametrize(
    "changed",
    [
        {"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@a:9093,2@b:9093,3@c:9093"},
        {"KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "a:9093,b:9093"},
        {"KAFKA_PROCESS_ROLES": "controller"},
    ],
)
def test_several_nodes_of_kraft_are_refused(changed: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="several brokers need ZooKeeper"):
        resolve(environ={**environment(), **changed})
    with_zookeeper = {"KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181"}
    resolve(environ={**environment(), **changed, **with_zookeeper})


def test_the_image_does_not_run_as_root_and_has_a_health_check() -> None:
    steps = re.findall(r"(?m)^[A-Z]+", CONTAINERFILE)
    assert steps.index("USER") < steps.index("ENTRYPOINT")
    assert "HEALTHCHECK" in steps
    for sources in re.findall(r"(?m)^COPY ([^-].*) \S+$", CONTAINERFILE):
        for name in sources.split():
            assert (DEPLOY.parent / name).exists(), name


def test_the_image_has_kafkas_commands_where_the_official_one_has_them() -> None:
    """Health checks of compose files call them by path."""
    assert "ln -s /usr/local/bin /opt/kafka/bin" in CONTAINERFILE


def test_the_image_installs_the_pinned_packages() -> None:
    for path, text in container_files().items():
        assert path.read_text(encoding="utf-8") == text, "run: python -m scripts.pins"


@pytest.mark.parametrize("name", ["penstock.yaml", "zookeeper.yaml"])
def test_a_stateful_set_matches_its_service_and_budget(name: str) -> None:
    found = documents(name)
    assert found.keys() == {"Service", "PodDisruptionBudget", "StatefulSet"}
    spec = found["StatefulSet"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["serviceName"] == found["Service"]["metadata"]["name"]
    assert found["Service"]["spec"]["selector"] == labels == spec["selector"]["matchLabels"]
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert found["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
    (container,) = spec["template"]["spec"]["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    offered = {each["name"]: each["port"] for each in found["Service"]["spec"]["ports"]}
    assert offered == ports
    for probe in ("readinessProbe", "livenessProbe"):
        asked = container[probe].get("httpGet") or container[probe].get("tcpSocket")
        assert asked is None or asked["port"] in ports
    claims = {each["metadata"]["name"] for each in spec["volumeClaimTemplates"]}
    assert {each["name"] for each in container["volumeMounts"]} == claims


def test_brokers_in_kubernetes_have_settings_that_exist() -> None:
    (container,) = documents("penstock.yaml")["StatefulSet"]["spec"]["template"]["spec"][
        "containers"
    ]
    environ = {each["name"]: each["value"] for each in container["env"]}
    environ |= {"KAFKA_BROKER_ID": "0", "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://a.penstock:9092"}
    assert resolve(environ=environ, strict=True).warnings == ()
    servers = environ["KAFKA_ZOOKEEPER_CONNECT"].split(",")
    zookeeper = documents("zookeeper.yaml")["StatefulSet"]
    name = f"{zookeeper['metadata']['name']}-%d.{zookeeper['spec']['serviceName']}:2181"
    assert servers == [name % number for number in range(zookeeper["spec"]["replicas"])]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "systemd" / "penstock.service").read_text(encoding="utf-8")
    copy = tmp_path / "penstock.service"
    copy.write_text(text.replace("/opt/penstock/bin/penstock", sys.executable))  # it must exist
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "penstock" in line]
    assert (done.returncode, ours) == (0, [])


def test_the_unit_waits_until_the_broker_is_ready() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "systemd" / "penstock.service")
    service = unit["Service"]
    assert service["Type"] == "notify"
    assert service["User"] != "root"
    assert " serve " in service["ExecStart"]
    assert service["RestartPreventExitStatus"] == "2"  # the exit code for wrong settings
