"""The command that installs an extra of Penstock, as Penstock itself was installed.

pip notes where a package came from if that was no index (PEP 610): a clone, a wheel, a repository.
"""

import json
from urllib.parse import unquote, urlsplit


def install(extra: str) -> str:
    # Late: it brings `email` and `zipfile`, and only a refusal needs it.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return command(extra, distribution("penstock").read_text("direct_url.json"))
    except PackageNotFoundError:  # run from a clone without being installed
        return f"pip install '.[{extra}]'"


def command(extra: str, direct_url: str | None) -> str:
    """`direct_url` is what pip has noted; None: it came from an index."""
    origin = json.loads(direct_url or "{}")
    url = origin.get("url", "")
    place = urlsplit(url)
    if place.scheme == "file":
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}'{unquote(place.path)}[{extra}]'"
    if vcs := origin.get("vcs_info"):
        return f"pip install 'penstock[{extra}] @ {vcs['vcs']}+{url}@{vcs['commit_id']}'"
    return f"pip install 'penstock[{extra}]{f' @ {url}' if url else ''}'"
