"""A project on disk: Spark's `spark-pipeline.yml`, and `penstock.yml` with flows."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeVar

import msgspec

from penstock.config.extra import install
from penstock.config.yaml_keys import yaml_problem
from penstock.errors import ConfigError
from penstock.spark.avro.schema_file import schema_text
from penstock.spark.pipeline.flow_spec import FlowSpec, check_flow, query_names

T = TypeVar("T")
_TABLE: Final = re.compile(r"\.table\b|materialized.view|streaming.table", re.IGNORECASE)
SPEC_NAMES: Final = ("spark-pipeline.yml", "spark-pipeline.yaml")
OWN_NAME: Final = "penstock.yml"
DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"


class Glob(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A pattern of files."""

    include: str


class Library(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Files with definitions, in Python or SQL."""

    glob: Glob


class SparkSpec(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Spark's own file; a relative `storage` starts at the project's folder."""

    name: str
    storage: str
    catalog: str | None = None
    database: str | None = None
    schema: str | None = None
    configuration: dict[str, str] = {}
    libraries: list[Library] = []


class ProjectTopic(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A topic that a run creates if it is missing; None: the broker's default."""

    partitions: Annotated[int, msgspec.Meta(ge=1)] | None = None
    replicas: Annotated[int, msgspec.Meta(ge=1)] | None = None
    configs: dict[str, str] = {}


class OwnSpec(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The settings that Penstock adds."""

    bootstrap: str | None = None
    topics: dict[str, ProjectTopic] = {}
    flows: list[FlowSpec] = []


@dataclass(frozen=True, slots=True)
class Project:
    """Both files, read and checked."""

    directory: Path
    spec_path: Path
    spec: SparkSpec
    own: OwnSpec

    @property
    def storage(self) -> str:
        """An absolute URL, as Spark needs; not quoted, since Spark takes `%20` literally."""
        storage = self.spec.storage
        return storage if "://" in storage else f"file://{(self.directory / storage).absolute()}"

    def makes_tables(self) -> bool:
        """Whether some definition seems to make a table; an unneeded catalog costs seconds."""
        return any(
            _TABLE.search(path.read_text(errors="replace"))
            for library in self.spec.libraries
            for path in _files(self.directory, library.glob.include)
        )

    def writes_delta(self) -> bool:
        return any(flow.to.delta is not None for flow in self.own.flows)

    def bootstrap(self, given: str | None, environment: Mapping[str, str]) -> str:
        return (
            given
            or environment.get("PENSTOCK_BOOTSTRAP")
            or self.own.bootstrap
            or DEFAULT_BOOTSTRAP
        )


def load_project(directory: Path) -> Project:
    """Read a project; `directory` may also be its spec file."""
    if directory.is_file():
        directory, spec_path = directory.parent, directory
    else:
        found = [directory / each for each in SPEC_NAMES if (directory / each).is_file()]
        if not found:
            raise ConfigError(
                f"{directory}: no {SPEC_NAMES[0]} there; `penstock pipeline init` makes a project"
            )
        if len(found) > 1:
            raise ConfigError(f"{directory}: has {' and '.join(SPEC_NAMES)}; keep one of them")
        (spec_path,) = found
    spec = _decoded(spec_path, SparkSpec)
    for each in spec.libraries:
        _check_glob(spec_path, each.glob.include)
    own_path = directory / OWN_NAME
    empty = not own_path.is_file() or not own_path.read_bytes().strip()
    own = OwnSpec() if empty else _decoded(own_path, OwnSpec)
    flows = _checked_flows(own_path, own.flows)
    own = msgspec.structs.replace(own, flows=flows)
    if not spec.libraries and not own.flows:
        raise ConfigError(f"{spec_path}: nothing to run: no libraries, and no flows in {OWN_NAME}")
    return Project(directory, spec_path, spec, own)


def _decoded(path: Path, kind: type[T]) -> T:
    try:
        data = path.read_bytes()
        if problem := yaml_problem(data):
            raise ConfigError(f"{path}: {problem}")
        return msgspec.yaml.decode(data, type=kind)
    except ImportError as error:
        raise ConfigError(f"YAML is read by PyYAML: {install('spark')}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        text = str(error).replace("Object", "the file").replace("`$.", "`")
        raise ConfigError(f"{path}: {text}") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


def _check_glob(path: Path, include: str) -> None:
    """Check the pattern before Spark starts, which accepts only two forms."""
    folder = include.removesuffix("/**")
    if any(sign in folder for sign in "*?["):
        raise ConfigError(f"{path}: libraries: {include!r} is neither a file nor FOLDER/**")


def _files(directory: Path, include: str) -> list[Path]:
    pattern = f"{include}/*" if include.endswith("/**") else include
    return [each for each in directory.glob(pattern) if each.suffix in {".py", ".sql"}]


def _checked_flows(path: Path, flows: list[FlowSpec]) -> list[FlowSpec]:
    """The checked flows, with schemas in place of file names."""
    found: dict[str, FlowSpec] = {}
    owners: dict[str, str] = {}
    for flow in flows:
        if flow.name in found:
            raise ConfigError(f"{path}: two flows are named {flow.name!r}")
        try:
            check_flow(flow)
            found[flow.name] = _with_schema(flow, path.parent)
        except ConfigError as error:
            raise ConfigError(f"{path}: flow {flow.name!r}: {error}") from error
        for query in query_names(flow):
            if query in owners:
                raise ConfigError(
                    f"{path}: flows {owners[query]!r} and {flow.name!r} both have a query, and a "
                    f"checkpoint, named {query!r}: name one of them otherwise"
                )
            owners[query] = flow.name
    return list(found.values())


def _with_schema(flow: FlowSpec, directory: Path) -> FlowSpec:
    source = flow.source
    if source.format != "avro" or source.schema is None:
        return flow
    source = msgspec.structs.replace(source, schema=schema_text(source.schema, directory))
    return msgspec.structs.replace(flow, source=source)


def user_path(directory: Path, path: str) -> str:
    """A path of a flow: URLs as they are, others relative to the project."""
    return path if "://" in path else os.path.abspath(directory / path)  # noqa: PTH100 - links stay


def user_url(directory: Path, url: str) -> str:
    """A database URL; SQLite's file is relative to the project, like all paths of a flow."""
    scheme, file = "sqlite:///", url.removeprefix("sqlite:///")
    if not url.startswith(scheme) or file.startswith("/"):
        return url
    return scheme + user_path(directory, file)
