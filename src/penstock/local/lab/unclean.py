"""`lab unclean`: what epochs cannot protect from."""

from penstock.client.errors import RequestTimedOut
from penstock.local.lab.epoch import led_by
from penstock.local.lab.in_sync import LAG_MS, members
from penstock.local.lab.stage import ALL, Stage, stage
from penstock.local.lab.telling import Teller


def unclean(teller: Teller) -> None:
    """unclean.leader.election.enable: available with committed records lost, or wait for them."""
    with stage({"replica.lag.time.max.ms": str(LAG_MS)}) as on:
        teller.title("unclean.leader.election.enable=false: the partition waits")
        alone_with_it(teller, on, "safe", "false")
        on.until("the election to fail", lambda: on.leaders("safe") == {-1})
        teller.show("nobody leads: broker 1 lacks a committed record", on.replicas("safe"))
        on.start(0)
        on.until("broker 0 to lead again", lambda: led_by(0, on.replicas("safe")))
        on.copied("safe", 2)
        teller.show("broker 0 is back and leads: nothing is lost", on.replicas("safe"))
        expect(teller, on, "safe", ["a", "committed"])
    with stage({"replica.lag.time.max.ms": str(LAG_MS)}) as on:
        teller.title("unclean.leader.election.enable=true: the first alive replica leads")
        alone_with_it(teller, on, "fast", "true")
        on.until("broker 1 to lead", lambda: led_by(1, on.replicas("fast")))
        on.write("fast", "other")
        teller.show("broker 1 leads although it lacks a record", on.replicas("fast"))
        on.start(0)
        on.copied("fast", 2)
        teller.show("broker 0 follows it, and cuts what was committed", on.replicas("fast"))
        expect(teller, on, "fast", ["a", "other"])


def alone_with_it(teller: Teller, on: Stage, topic: str, allowed: str) -> None:
    on.create(topic, (0, 1), {"unclean.leader.election.enable": allowed})
    on.write(topic, "a", acks=ALL)
    on.copied(topic, 1)
    on.pause(1)
    on.write(topic, "committed")
    on.until("broker 1 to fall out of sync", lambda: members(on.replicas(topic)) == {0})
    on.until("the high watermark", lambda: on.replicas(topic)[0].high_watermark == 2)
    teller.show("broker 1 is out of sync: broker 0 alone commits", on.replicas(topic))
    on.kill(0)
    on.resume(1)
    teller.say("broker 0 is killed, broker 1 goes on")


def expect(teller: Teller, on: Stage, topic: str, values: list[str]) -> None:
    if (found := on.readable(topic)) != values:
        raise RequestTimedOut(f"a consumer of {topic} read {found}, not {values}")
    teller.say(f"a consumer reads: {' '.join(values)}")
