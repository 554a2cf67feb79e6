"""The console of a real broker, in a separate process: pages and REST."""

import json
import re
import subprocess
import sys
from urllib.parse import quote

import pytest

from support.console import GROUP, get

pytestmark = pytest.mark.slow


def test_rest_shows_topics_groups_and_problems(url: str) -> None:
    def read(path: str) -> object:
        status, body = get(f"{url}/api/v1/{path}")
        assert status == 200, body
        return json.loads(body)

    topics = read("topics")
    assert isinstance(topics, list)
    (orders,) = [each for each in topics if each["name"] == "orders"]
    assert (orders["records"], orders["groups"], orders["lag"]) == (2000, 1, 1990)
    (partition,) = json.loads(get(f"{url}/api/v1/topics/orders/partitions")[1])
    assert (partition["leader"], partition["end"]) == (1, 2000)
    (group,) = json.loads(get(f"{url}/api/v1/groups")[1])
    assert (group["id"], group["lag"]) == (GROUP, 1990)
    (problem,) = json.loads(get(f"{url}/api/v1/problems")[1])
    assert (problem["check"], problem["subject"]) == ("backlog", GROUP)
    assert problem["since_ms"] > 0
    why = json.loads(get(f"{url}/api/v1/group/why?group={quote(GROUP, safe='')}")[1])
    assert why["cause"] == "no_members"


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("topics/none/partitions", 404, "there is no topic none"),
        ("group", 400, "parameters must be: group"),
        ("group?group=a&group=b", 400, "parameters must be: group"),
        ("cluster?x=1", 400, "parameters must be: none"),
        (
            "topics?x=1",
            400,
            "parameters must be: match (optional), sort (optional), page (optional)",
        ),
        ("group/why?group=none", 404, "there is no group none"),
    ],
)
def test_rest_refuses_with_a_sentence(url: str, path: str, status: int, error: str) -> None:
    found, body = get(f"{url}/api/v1/{path}")
    assert (found, json.loads(body)) == (status, {"error": error})


@pytest.mark.row("A161")
def test_pages_show_the_cluster_and_escape_names(url: str) -> None:
    overview = get(url)[1]
    assert "has not read 1990 records" in overview
    assert "controller" in overview
    assert "orders" in get(f"{url}/topics?match=ORD")[1]
    assert "0 topics" in get(f"{url}/topics?match=none")[1]
    picture = get(f"{url}/topics/orders")[1]
    assert 'aria-label="committed up to 2000, written up to 2000"' in picture
    groups = get(f"{url}/groups")[1]
    assert "odd/group &lt;b&gt;" in groups
    assert "<b>" not in groups
    (link,) = re.findall(r'href="(/group\?[^"]+)"', groups)
    assert "1,990" in get(f"{url}{link}")[1]
    assert "nobody reads its 1990 records" in get(f"{url}/group/why?group={quote(GROUP)}")[1]
    for page in ("topics/none", "group?group=none"):
        assert get(f"{url}/{page}")[0] == 404


def test_pages_load_nothing_from_other_hosts(url: str) -> None:
    for path in ("/", "/topics", "/groups", "/topics/orders"):
        page = get(f"{url}{path}")[1]
        for name in re.findall(r'(?:src|href)="([^"]+)"', page):
            assert name.startswith(("/", "?", "#")), name
        for name in re.findall(r'"(/static/[^"]+)"', page):
            assert get(f"{url}{name}")[0] == 200
        assert "style=" not in page, "the content security policy forbids it"
        assert "<script>" not in page


def test_a_console_for_other_machines_needs_users(url: str) -> None:
    assert url
    command = [sys.executable, "-m", "penstock", "console", "--listen", "0.0.0.0:0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 2
    assert "--listen is 0.0.0.0, which other machines reach" in done.stderr
