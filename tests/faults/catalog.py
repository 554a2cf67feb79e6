"""The faults by name. Each happens under load, ends by itself, and leaves all brokers running."""

import random
import threading
from collections.abc import Callable

from faults.links import both_ways, cut
from faults.load import Load
from faults.stage import BROKERS, Stage
from peers.penstock_cluster import own_host
from penstock.record.batch import LENGTH_END

Fault = Callable[[Stage, Load], None]

SILENT_S = 4
"""Longer than a session lasts in the tests: a broker that is silent for so long loses its
session.
"""
SOME = 100
"""The number of acknowledgements that shows that writing continues."""


def killed(of: Callable[[Stage], int]) -> Fault:
    def fault(stage: Stage, load: Load) -> None:
        victim = of(stage)
        stage.brokers.kill(victim)
        load.wait_for_acks(SOME)
        stage.brokers.start(victim)

    return fault


def terminated(of: Callable[[Stage], int]) -> Fault:
    def fault(stage: Stage, load: Load) -> None:
        victim = of(stage)
        stage.brokers.stop(victim)
        load.wait_for_acks(SOME)
        stage.brokers.start(victim)

    return fault


def paused(of: Callable[[Stage], int]) -> Fault:
    def fault(stage: Stage, load: Load) -> None:
        victim = of(stage)
        with stage.paused(stage.brokers.pids[victim]):
            stage.wait_until_led_elsewhere(victim)
            load.wait_for_acks(SOME)

    return fault


def session_expired(of: Callable[[Stage], int]) -> Fault:
    def fault(stage: Stage, load: Load) -> None:
        stage.expire_session(of(stage))
        load.wait_for_acks(3 * SOME)

    return fault


def zookeeper_restarted(stage: Stage, load: Load) -> None:
    servers = stage.zookeeper.pids
    stage.zookeeper.kill(*servers)
    load.wait_for_acks(SOME)  # leaders continue as long as nothing changes
    stage.zookeeper.start(*servers)
    load.wait_for_acks(SOME)


def zookeeper_gone(seconds: float) -> Fault:
    def fault(stage: Stage, load: Load) -> None:
        servers = stage.zookeeper.pids
        stage.zookeeper.kill(*servers)
        threading.Event().wait(seconds)
        load.wait_for_acks(SOME)
        stage.zookeeper.start(*servers)
        load.wait_for_acks(SOME)

    return fault


def zookeeper_paused(stage: Stage, load: Load) -> None:
    with stage.paused(stage.zookeeper.pids[0]):
        threading.Event().wait(SILENT_S)
    load.wait_for_acks(SOME)


def zookeeper_leader_killed(stage: Stage, load: Load) -> None:
    """Kills the leader of an ensemble; the two other servers continue."""
    servers = stage.zookeeper.pids
    leader = next(each for each in servers if stage.zookeeper.mode(each) == "leader")
    stage.zookeeper.kill(leader)
    load.wait_for_acks(3 * SOME)
    stage.zookeeper.start(leader)


def cut_off(of: Callable[[Stage], int], *, seconds: float = SILENT_S) -> Fault:
    """Cuts all links between this broker and the others; clients and ZooKeeper still reach it."""

    def fault(stage: Stage, load: Load) -> None:
        victim = of(stage)
        others = [each for each in range(BROKERS) if each != victim]
        with cut(*both_ways(*((own_host(victim), own_host(each)) for each in others))):
            threading.Event().wait(seconds)
        load.wait_for_acks(SOME)

    return fault


def cut_one_way(of: Callable[[Stage], int], *, incoming: bool) -> Fault:
    def fault(stage: Stage, load: Load) -> None:
        victim = of(stage)
        links = [(own_host(each), own_host(victim)) for each in range(BROKERS) if each != victim]
        with cut(*(links if incoming else [(b, a) for a, b in links])):
            threading.Event().wait(SILENT_S)
        load.wait_for_acks(SOME)

    return fault


def damaged(damage: Callable[[bytearray], None]) -> Fault:
    """Kills a follower, and changes its disk before it comes back."""

    def fault(stage: Stage, load: Load) -> None:
        victim = stage.follower
        load.wait_for_acks(SOME)
        stage.brokers.kill(victim)
        damage_logs(stage, victim, damage)
        load.wait_for_acks(SOME)
        stage.brokers.start(victim)

    return fault


def damage_logs(stage: Stage, broker: int, damage: Callable[[bytearray], None]) -> None:
    """Changes the last batches of each partition. A broker that was killed early may have none of
    some partitions; after a roll the last segment is empty.
    """
    directories = stage.brokers.data_dir(broker).glob(f"{stage.topic}-*")
    segments = [[each for each in at.glob("*.log") if each.stat().st_size] for at in directories]
    filled = [max(each) for each in segments if each]
    assert filled, f"broker {broker} has no batch to damage"
    for last in filled:
        data = bytearray(last.read_bytes())
        damage(data)
        last.write_bytes(data)


def bit_flip(data: bytearray) -> None:
    data[len(data) // 2] ^= 0x10


def flip_in_last_batch(byte: int) -> Callable[[bytearray], None]:
    """Flips a bit of a field that no CRC covers, in the last batch, where no later batch reveals
    it.
    """

    def flip(data: bytearray) -> None:
        data[last_batch(data) + byte] ^= 0x10

    return flip


def last_batch(data: bytearray) -> int:
    """The position of the last batch."""
    last = position = 0
    while position + LENGTH_END <= len(data):
        last = position
        position += LENGTH_END + int.from_bytes(data[position + 8 : position + LENGTH_END])
    return last


def truncation(data: bytearray) -> None:
    del data[len(data) * 2 // 3 :]


def torn_write(data: bytearray) -> None:
    """Of the last batch only the first half reached the disk; the file has its full length."""
    last = last_batch(data)
    half = (len(data) - last) // 2
    data[last + half :] = bytes(len(data) - last - half)


def all_killed_and_one_damaged(stage: Stage, load: Load) -> None:
    """The power fails, and one disk comes back with a flipped bit; the other replicas are
    intact.
    """
    victim = stage.leader
    load.wait_for_acks(SOME)
    stage.brokers.kill(*range(BROKERS))
    damage_logs(stage, victim, bit_flip)
    stage.brokers.start(*range(BROKERS))
    load.wait_for_acks(SOME)


def all_killed(stage: Stage, load: Load) -> None:
    stage.brokers.kill(*range(BROKERS))
    stage.brokers.start(*range(BROKERS))
    load.wait_for_acks(SOME)


def bounced(stage: Stage, load: Load) -> None:
    """Stops every broker in turn, cleanly: a rolling restart."""
    for broker in range(BROKERS):
        stage.brokers.stop(broker)
        load.wait_for_acks(SOME // 2)
        stage.brokers.start(broker)
        stage.wait_until_healed()


def at_random(seed: int, rounds: int) -> Fault:
    """Kills and pauses any broker at random, even two at once."""

    def fault(stage: Stage, load: Load) -> None:
        dice = random.Random(seed)
        for _ in range(rounds):
            victims = dice.sample(range(BROKERS), dice.choice([1, 1, 1, 2]))
            moment_s = dice.uniform(0, 2 * SILENT_S)
            if dice.random() < 0.6:
                stage.brokers.kill(*victims)
                threading.Event().wait(moment_s / 4)
                stage.brokers.start(*victims)
            else:
                with stage.paused(stage.brokers.pids[victims[0]]):
                    threading.Event().wait(moment_s)
            if dice.random() < 0.5:
                stage.wait_until_healed()
        load.wait_for_acks(SOME)

    return fault


def leader(stage: Stage) -> int:
    return stage.leader


def follower(stage: Stage) -> int:
    return stage.follower


def controller(stage: Stage) -> int:
    return stage.controller


def coordinator(stage: Stage) -> int:
    return stage.coordinator


PROCESSES: dict[str, Fault] = {
    "leader killed": killed(leader),
    "follower killed": killed(follower),
    "controller killed": killed(controller),
    "leader terminated": terminated(leader),
    "follower terminated": terminated(follower),
    "controller terminated": terminated(controller),
    "leader paused": paused(leader),
    "follower paused": paused(follower),
    "controller paused": paused(controller),
    "all killed": all_killed,
    "rolling restart": bounced,
}
SESSIONS: dict[str, Fault] = {
    "leader's session expired": session_expired(leader),
    "controller's session expired": session_expired(controller),
    "ZooKeeper restarted": zookeeper_restarted,
    "ZooKeeper paused": zookeeper_paused,
    "ZooKeeper gone for 10 s": zookeeper_gone(10),
    "ZooKeeper gone for a minute": zookeeper_gone(60),
}
LINKS: dict[str, Fault] = {
    "leader cut off": cut_off(leader),
    "follower cut off": cut_off(follower),
    "controller cut off": cut_off(controller),
    "leader cut off for long": cut_off(leader, seconds=20),
    "leader hears nobody": cut_one_way(leader, incoming=True),
    "nobody hears the leader": cut_one_way(leader, incoming=False),
    "controller hears nobody": cut_one_way(controller, incoming=True),
    "nobody hears the controller": cut_one_way(controller, incoming=False),
}
COORDINATORS: dict[str, Fault] = {
    "coordinator killed": killed(coordinator),
    "coordinator terminated": terminated(coordinator),
    "coordinator paused": paused(coordinator),
    "coordinator's session expired": session_expired(coordinator),
}
"""Faults of the coordinator of the group that a witness forms."""
DISKS: dict[str, Fault] = {
    "bit flip": damaged(bit_flip),
    "flipped offset": damaged(flip_in_last_batch(7)),
    "flipped epoch": damaged(flip_in_last_batch(15)),
    "truncated segment": damaged(truncation),
    "torn write": damaged(torn_write),
    "all killed, bit flip": all_killed_and_one_damaged,
}
