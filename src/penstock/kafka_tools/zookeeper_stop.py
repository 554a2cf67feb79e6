"""`zookeeper-server-stop.sh`: stops what `zookeeper-server-start.sh` started."""

from penstock.kafka_tools.options import Table
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.server_registry import forget, started
from penstock.kafka_tools.tool import Tool, ToolError

PATIENCE_S = 30.0


def stop(_args: Arguments) -> int:
    from penstock.local.process import StartedProcess, end

    found = 0
    for server in started("zookeeper"):
        process = StartedProcess(server.pid, server.began)
        if process.is_alive():
            found += 1
            end(process, kill=False, patience_s=PATIENCE_S)
        forget(server)
    if not found:
        raise ToolError("No zookeeper server to stop")
    return 0


TOOL = Tool(
    Table("zookeeper-server-stop", "Stop what zookeeper-server-start.sh started.", ()),
    stop,
    lambda error, _: f"{error}",
    failed_on_stdout=True,
)
