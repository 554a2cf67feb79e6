"""Routes that lead back to their source."""

from penstock.config.delay_route import Route, route_of
from penstock.retry.rings import rings


def routes(**targets: str) -> dict[str, Route]:
    found = {}
    for topic, to in targets.items():
        target, _, dead = to.partition(" ")
        settings = {"penstock.delay.to": target, "penstock.dlq.topic": dead}
        route = route_of(topic, settings)
        assert route is not None
        found[topic] = route
    return found


def test_a_ring_is_reported_with_its_path() -> None:
    found = rings(routes(a="b", b="c", c="a", d="a", e="orders", f="g", g="f"))
    assert found == {
        "a": "a → b → c → a",
        "b": "b → c → a → b",
        "c": "c → a → b → c",
        "f": "f → g → f",
        "g": "g → f → g",
    }


def test_dead_letters_that_return_are_a_ring_too() -> None:
    assert rings(routes(a="orders dead", dead="a")) == {
        "a": "a → dead → a",
        "dead": "dead → a → dead",
    }
