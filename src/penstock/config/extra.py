"""The command that installs an extra of Penstock from where Penstock itself was installed.

For a package that did not come from an index, pip records the origin (PEP 610): a clone, a wheel, a
repository.
"""

import json
from urllib.parse import unquote, urlsplit


def install(extra: str) -> str:
    # Late: it imports `email` and `zipfile`, and is needed only for an error message.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return command(extra, distribution("penstock").read_text("direct_url.json"))
    except PackageNotFoundError:  # run from a clone, not installed
        return f"pip install '.[{extra}]'"


def command(extra: str, direct_url: str | None) -> str:
    """The pip command; `direct_url` is pip's record, None if the package came from an index."""
    origin = json.loads(direct_url or "{}")
    url = origin.get("url", "")
    place = urlsplit(url)
    if place.scheme == "file":
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}'{unquote(place.path)}[{extra}]'"
    if vcs := origin.get("vcs_info"):
        return f"pip install 'penstock[{extra}] @ {vcs['vcs']}+{url}@{vcs['commit_id']}'"
    return f"pip install 'penstock[{extra}]{f' @ {url}' if url else ''}'"
