"""Rewrites `src/penstock/wire/messages` and the table in `src/penstock/wire/apis.py`."""

import sys
from pathlib import Path
from typing import Any

from codegen.render import Module
from codegen.schemas import DATA, INTER_BROKER, Api, apis, flexible, read_schemas, versions
from penstock.wire.apis import snake

WIRE = Path(__file__).parent.parent / "src" / "penstock" / "wire"
MARK = "# --- written by codegen below this line ---\n"


def generated(current: Path, zookeeper_mode: Path) -> dict[Path, str]:
    """Every file that codegen owns, with its text."""
    files = {WIRE / "messages" / "__init__.py": PACKAGE}
    table = apis(current, zookeeper_mode)
    for api in table:
        module = Module(f"{api.name} (key {api.key})", api.low, api.high)
        module.add(api.request)
        module.add(api.response)
        files[WIRE / "messages" / f"{snake(api.name)}.py"] = module.text()
    schemas = read_schemas(current)
    data = {name: schemas[name] for name in DATA}
    for name, schema in data.items():
        module = Module(name, *versions(schema))
        module.add(schema)
        files[WIRE / "messages" / f"{snake(name)}.py"] = module.text()
    written_by_hand, _, _ = (WIRE / "apis.py").read_text().partition(MARK)
    files[WIRE / "apis.py"] = written_by_hand + MARK + rows(table, data)
    return files


def rows(table: list[Api], data: dict[str, dict[str, Any]]) -> str:
    lines = ["\nAPIS: Final = {", "    api.key: api", "    for api in ("]
    for api in table:
        arguments = [str(api.key), f'"{api.name}"', str(api.low), str(api.high)]
        if api.flexible is not None:
            arguments.append(f"flexible={api.flexible}")
        if api.key in INTER_BROKER:
            arguments.append("inter_broker=True")
        lines.append(f"        Api({', '.join(arguments)}),")
    lines += ["    )", "}", "_BY_NAME: Final = {api.name: api for api in APIS.values()}"]
    lines += ["DATA: Final = {"]
    lines += [f'    "{name}": {flexible(schema) or 32767},' for name, schema in data.items()]
    return "\n".join(
        [*lines, "}", '"""First flexible versions of messages that no request is."""', ""]
    )


PACKAGE = (
    '"""One module per API: the classes of its request and response. Imported on first use."""\n'
)


def main() -> None:
    current, zookeeper_mode = map(Path, sys.argv[1:])
    files = generated(current, zookeeper_mode)
    for path in (WIRE / "messages").glob("*.py"):
        if path not in files:
            path.unlink()
    for path, text in files.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
