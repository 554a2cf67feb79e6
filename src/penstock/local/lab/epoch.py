"""`lab epoch`: a returning leader truncates only what its epoch did not commit."""

from penstock.client.errors import RequestTimedOut
from penstock.local.lab.narration import Narrator, ReplicaSnapshot
from penstock.local.lab.stage import ALL, stage


def epoch(narrator: Narrator) -> None:
    """Leader epochs on a real cluster: a killed leader comes back and takes the others' log."""
    with stage({}) as on:
        narrator.title("Leader epochs: <epoch, first offset> says whose records are whose")
        on.create("t", (0, 1))
        on.write("t", "a", "b", "c", acks=ALL)
        on.copied("t", 3)
        narrator.show("epoch 0, led by broker 0: three committed records", on.replicas("t"))
        on.pause(1)
        on.write("t", "x", "y")
        narrator.show("broker 1 hangs; x and y with acks=1 are on broker 0 alone", on.replicas("t"))
        on.kill(0)
        on.resume(1)
        on.until("broker 1 to lead", lambda: led_by(1, on.replicas("t")))
        on.write("t", "d")
        narrator.show("broker 0 was killed; broker 1 leads epoch 1 and takes d", on.replicas("t"))
        on.start(0)
        on.copied("t", 4)
        narrator.show(
            "broker 0 learns that epoch 0 ended at offset 3: it truncates x and y, and copies d",
            on.replicas("t"),
        )
        found = on.readable("t")
        if found != ["a", "b", "c", "d"]:
            raise RequestTimedOut(f"a consumer read {found}")
        on.kill(1)
        on.until("broker 0 to lead", lambda: led_by(0, on.replicas("t")))
        if (again := on.readable("t")) != found:
            raise RequestTimedOut(f"a consumer of broker 0 read {again}, of broker 1 {found}")
        narrator.say("a consumer reads a b c d, from broker 1 and, after its death, from broker 0")


def led_by(broker: int, replicas: list[ReplicaSnapshot]) -> bool:
    return any(each.broker == broker and each.role == "leader" for each in replicas)
