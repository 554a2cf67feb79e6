"""Generates `wire/messages` and the table in `wire/apis.py` from the installed Kafka jars."""

import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

from codegen.render import Module
from codegen.schemas import (
    INTER_BROKER,
    ApiSchema,
    Jars,
    apis,
    data_messages,
    flexible,
    metadata_records,
    versions,
)
from penstock.wire.apis import snake

REPOSITORY = Path(__file__).parent.parent
WIRE = REPOSITORY / "src" / "penstock" / "wire"
MARK = "# --- written by codegen below this line ---\n"
Schemas: TypeAlias = dict[str, dict[str, Any]]
PACKAGE = '"""One module per API, with its request and response; imported on first use."""\n'


def write(wire: Path, jars: Jars) -> None:
    """Write every generated file under `wire`; `apis.py` must exist, its upper part is kept."""
    files = {"messages/__init__.py": PACKAGE}
    table = apis(jars.current, jars.zookeeper_mode)
    for api in table:
        module = Module(f"{api.name} (key {api.key})", api.low, api.high)
        module.add(api.request)
        module.add(api.response)
        files[f"messages/{snake(api.name)}.py"] = module.text()
    kraft = metadata_records(jars)
    others = data_messages(jars) | kraft
    for name, schema in others.items():
        module = Module(name, *versions(schema))
        module.add(schema)
        files[f"messages/{snake(name)}.py"] = module.text()
    written_by_hand, _, _ = (wire / "apis.py").read_text().partition(MARK)
    files["apis.py"] = written_by_hand + MARK + rows(table, others, kraft)
    for old in (wire / "messages").glob("*.py"):
        old.unlink()
    for name, text in files.items():
        (wire / name).write_text(text)
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "--no-cache"]
    subprocess.run([*ruff, "--config", REPOSITORY / "pyproject.toml", wire], check=True)


def rows(table: list[ApiSchema], others: Schemas, kraft: Schemas) -> str:
    lines = ["\nAPIS: Final = {", "    api.key: api", "    for api in ("]
    for api in table:
        arguments = [str(api.key), f'"{api.name}"', str(api.low), str(api.high)]
        if api.flexible is not None:
            arguments.append(f"flexible={api.flexible}")
        if api.key in INTER_BROKER:
            arguments.append("inter_broker=True")
        lines.append(f"        Api({', '.join(arguments)}),")
    lines += ["    )", "}", "_BY_NAME: Final = {api.name: api for api in APIS.values()}"]
    lines += ["DATA_MESSAGES: Final = {"]
    for name, schema in others.items():
        low, high = versions(schema)
        first = flexible(schema)
        first = 32767 if first is None else first
        lines.append(f'    "{name}": DataMessage({low}, {high}, flexible={first}),')
    lines += [
        "}",
        '"""Messages that are neither requests nor responses, by name."""',
        "METADATA_RECORDS: Final = {",
    ]
    lines += [f'    {schema["apiKey"]}: "{name}",' for name, schema in kraft.items()]
    return "\n".join([*lines, "}", '"""The records of the KRaft metadata log, by type."""', ""])


def installed_jars() -> Jars:
    from peers.jars import jar  # importable only with `tests` on the path: see `main`

    return Jars(
        jar("clients-4.4.0", "kafka-clients"),
        jar("kafka-3.9.2", "kafka-clients"),
        jar("kafka-4.3.1", "kafka-group-coordinator"),
        jar("kafka-4.3.1", "kafka-transaction-coordinator"),
        jar("kafka-4.3.1", "kafka-share-coordinator"),
        jar("kafka-4.3.1", "kafka-metadata"),
    )


def main() -> None:
    sys.path.insert(0, str(REPOSITORY / "tests"))
    write(WIRE, installed_jars())


if __name__ == "__main__":
    main()
