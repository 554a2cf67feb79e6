"""`kafka-server-stop.sh`: stops the brokers that `kafka-server-start.sh` started."""

from pathlib import Path

from penstock.kafka_tools.options import Table, number, text
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.server_registry import forget, started
from penstock.kafka_tools.tool import Tool, ToolError

PATIENCE_S = 60.0


def stop(args: Arguments) -> int:
    from penstock.broker.startup.state_file import read_state
    from penstock.cli.daemon import stop_broker

    wanted = args.find_number("node-id")
    found = 0
    for server in started("broker"):
        directory = Path(server.directory)
        state = read_state(directory)
        if state is None:
            forget(server)
        elif wanted in {None, state.broker_id}:
            found += 1
            stop_broker(directory, PATIENCE_S)
            forget(server)
    if not found:
        raise ToolError("No kafka server to stop")
    return 0


TOOL = Tool(
    Table(
        "kafka-server-stop",
        "Stop the brokers that kafka-server-start.sh started.",
        (
            number("node-id", "ID", "Only the broker with this id."),
            text("process-role", "ROLE", "Accepted, without effect."),
        ),
    ),
    stop,
    lambda error, _: f"{error}",
    failed_on_stdout=True,
)
