"""The ten commands of docs/security.md, run in order exactly as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

from peers.process import free_ports

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
SECTION = re.compile(r"^## Ten commands.*?(?=^## )", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEY = "-X ssl.keystore.location="


def test_ten_commands_set_up_certificates_and_acls(tmp_path: Path) -> None:
    found = SECTION.search(PAGE.read_text())
    assert found is not None
    (port,) = free_ports(1)
    section = found[0].replace("9093", str(port))
    blocks = BLOCK.findall(section)
    files = [text for kind, text in blocks if kind == "properties"]
    for name, text in zip(("server.properties", "client.properties"), files, strict=True):
        (tmp_path / name).write_text(text)
    commands = [
        line for kind, text in blocks if kind == "bash" for line in text.strip().splitlines()
    ]
    assert len(commands) == 10
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    try:
        printed = ""
        for command in commands:
            done = run(command)
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            printed = done.stdout
        assert printed == "42\n"
        client = f"--command-config client.properties {KEY}"
        why = run(f"penstock acl explain alice delete topic:payments {client}admin.pem")
        assert "denied: there are rules for topic:payments" in why.stdout
        refused = run(f"penstock topic delete payments --yes {client}alice.pem")
        assert refused.returncode == 4, refused.stderr
        nobody = run("penstock topic list --command-config client.properties")
        assert nobody.returncode != 0, "a client without a certificate is let in"
    finally:
        run("penstock stop --dir data")
