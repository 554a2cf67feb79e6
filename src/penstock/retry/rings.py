"""Finds routes that lead back to where they began: a record would go round forever. No I/O."""

from collections.abc import Iterator, Mapping

from penstock.config.delay_route import Route


def rings(routes: Mapping[str, Route]) -> dict[str, str]:
    """The topics on a ring, by targets or dead letters, and the ring of each: `a → b → a`.

    Topics that only lead to a ring are not included.
    """
    found: dict[str, str] = {}
    for topic in routes:
        way = _way_back(topic, routes)
        if way:
            found[topic] = " → ".join(way)
    return found


def _way_back(start: str, routes: Mapping[str, Route]) -> list[str]:
    """A shortest path from the topic to itself; empty: there is none."""
    came_from: dict[str, str] = {}
    reached = [start]
    for topic in reached:  # grows in the loop
        for target in _targets(topic, routes):
            if target == start:
                way = [start]
                while topic != start:
                    way.append(topic)
                    topic = came_from[topic]
                return [start, *reversed(way)]
            if target not in came_from:
                came_from[target] = topic
                reached.append(target)
    return []


def _targets(topic: str, routes: Mapping[str, Route]) -> Iterator[str]:
    route = routes.get(topic)
    if route is not None:
        yield route.to
        yield route.dead_letters
