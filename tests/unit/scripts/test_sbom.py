"""The bill of materials names what a release installs, with the versions of constraints.txt."""

import tarfile
import tomllib
from pathlib import Path

from scripts.dist import digest, normalize
from scripts.pins import closure, hashed_requirements, pinned, version_of
from scripts.sbom import bill

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = {"click", "crc32c", "cramjam", "google-re2", "msgspec", "uvloop"}


def test_the_core_needs_few_packages() -> None:
    assert closure(PROJECT["dependencies"]) == CORE


def test_requirements_are_pinned_by_hash() -> None:
    text = hashed_requirements(["click>=8.3"])
    assert text.startswith("click==")
    assert "--hash=sha256:" in text


def test_the_core_is_required_and_extras_are_optional() -> None:
    made = bill(PROJECT, 0)
    scopes = {each["name"]: each["scope"] for each in made["components"]}
    assert {name for name, scope in scopes.items() if scope == "required"} == CORE
    assert scopes["kazoo"] == "optional"
    assert "hypothesis" not in scopes  # from the extra for development
    versions = {name: version_of(block) for name, block in pinned().items()}
    assert all(versions[each["name"]] == each["version"] for each in made["components"])
    assert all(each["licenses"] for each in made["components"])
    assert made["metadata"]["timestamp"] == "1970-01-01T00:00:00+00:00"
    references = {each["bom-ref"] for each in made["components"]}
    assert set(made["dependencies"][0]["dependsOn"]) == references


def test_an_archive_depends_only_on_its_content_and_date(tmp_path: Path) -> None:
    sums = set()
    for number, names in enumerate((["a", "b"], ["b", "a"])):
        for name in names:
            (tmp_path / name).write_text(name)
            (tmp_path / name).chmod(0o600 + number)
        archive = tmp_path / f"{number}.tar.gz"
        with tarfile.open(archive, "w:gz") as packed:
            for name in names:
                packed.add(tmp_path / name, f"penstock/{name}")
        normalize(archive, 1)
        sums.add(digest(archive))
    assert len(sums) == 1
