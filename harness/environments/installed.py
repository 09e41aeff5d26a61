"""What is installed in an environment, read from its ``dist-info`` folders; nothing is started for it."""

import re
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from harness.domain.environment import Distribution
from harness.errors import ConfigError
from harness.store.json import from_json


def installed_in(interpreter: str, *, name: str) -> dict[str, Distribution]:
    """Return the distributions beside ``interpreter``, by their normalized names.

    Args:
        name: how a message calls the environment.

    Raises:
        ConfigError: there is no ``site-packages`` beside it, or no torch in it.
    """
    sites = _sites(interpreter)
    found: dict[str, Distribution] = {}
    for item in metadata.distributions(path=[str(site) for site in sites]):
        written = item.metadata["Name"]
        if written:
            found.setdefault(canonicalize_name(written), _described(canonicalize_name(written), item))
    if "torch" not in found:
        raise ConfigError(
            f"{name}: no torch is installed beside {interpreter}",
            "name the python of an environment with its own lib/python3.*/site-packages",
        )
    return found


def python_of(interpreter: str) -> str:
    """Return ``"3.11"``: the Python whose ``site-packages`` lies beside ``interpreter``; empty without one."""
    minors = [match[1] for site in _sites(interpreter) if (match := re.search(r"/python(3\.\d+)/", f"{site}/"))]
    return minors[0] if minors else ""


def _sites(interpreter: str) -> list[Path]:
    return sorted(Path(interpreter).absolute().parent.parent.glob("lib/python3.*/site-packages"))


def _described(name: str, item: metadata.Distribution) -> Distribution:
    return Distribution(
        name=name,
        version=item.version,
        requirement=_requirement(name, item),
        needs=tuple(item.requires or ()),
    )


def _requirement(name: str, item: metadata.Distribution) -> str:
    """Return the requirement that installs it again: from its recorded source, else by its version."""
    origin = _origin(item)
    url, control = origin.get("url"), origin.get("vcs_info")
    if not isinstance(url, str):
        return f"{name}=={item.version}"
    if isinstance(control, dict):
        return f"{name} @ {control.get('vcs', 'git')}+{url}@{control.get('commit_id', '')}"
    return f"{name} @ {url}"


def _origin(item: metadata.Distribution) -> dict[str, Any]:
    """Return ``direct_url.json`` (PEP 610); empty for what was installed from an index."""
    try:
        return from_json((item.read_text("direct_url.json") or "{}").encode(), dict[str, Any])
    except ValueError:
        return {}
