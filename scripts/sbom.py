"""Writes a release's bill of materials as CycloneDX JSON: the installed packages and licences.

Versions are those of constraints.txt, with which a release is tried; licences are from the
packages' metadata. The core's dependencies are `required`, those of extras `optional`.
"""

import json
import os
import sys
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from scripts.pins import closure, pinned, version_of

from penstock import __version__

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
NOT_SHIPPED = {"dev"}


def bill(project: Mapping[str, Any], made_s: int) -> dict[str, Any]:
    """The document for this `[project]` table."""
    extras = project["optional-dependencies"]
    core = closure(project["dependencies"])
    optional = closure(each for name in extras if name not in NOT_SHIPPED for each in extras[name])
    own = _purl(project["name"], __version__)
    versions = {name: version_of(block) for name, block in pinned().items()}
    names = sorted(name for name in core | optional if name in versions)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(made_s, UTC).isoformat(),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": __version__,
                "purl": own,
                "licenses": [{"license": {"id": project["license"]}}],
            },
        },
        "components": [
            _component(name, versions[name], "required" if name in core else "optional")
            for name in names
        ],
        "dependencies": [
            {"ref": own, "dependsOn": [_purl(name, versions[name]) for name in names]},
        ],
    }


def _component(name: str, version: str, scope: str) -> dict[str, Any]:
    purl = _purl(name, version)
    found = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "scope": scope,
        "purl": purl,
    }
    licence = _licence(name)
    return found | ({"licenses": [{"license": {"name": licence}}]} if licence else {})


def _licence(name: str) -> str:
    try:
        reported = metadata(name)
    except PackageNotFoundError:
        return ""
    classified = [
        each.rpartition(" :: ")[2]
        for each in reported.get_all("Classifier") or []
        if each.startswith("License :: ")
    ]
    spelled = _field(reported, "License-Expression") or ", ".join(classified)
    return spelled or _field(reported, "License").partition("\n")[0]


def _field(reported: PackageMetadata, name: str) -> str:
    return str((reported.get_all(name) or [""])[0])


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def main() -> None:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    made = bill(project, int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    json.dump(made, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
