"""What makes a page of a template: its own files, everything escaped, ASCII, and digests for its policy."""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from itertools import zip_longest
from typing import Any

TEMPLATES = "templates"
_UPSTREAM = re.compile(r"(https://github\.com/pytorch/[a-z]+/(?:pull|issues|commit)/[0-9a-f]+)")


def page_of(template: str, views: Mapping[str, Any]) -> str:
    """Return a template with its views laid out, in ASCII and ending with a newline."""
    text: str = _environment().get_template(template).render(views).rstrip("\n") + "\n"
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")  # whatever a terminal or a server takes it for


@cache
def _environment() -> Any:
    """Return what compiles templates; it is imported only here, so that ``--help`` does not wait for it."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415

    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(own),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["upstream"] = upstream
    return environment


def upstream(text: str) -> Any:
    """Return a text as markup in which issues, pull requests and commits of PyTorch, and nothing else, are links."""
    from markupsafe import Markup, escape  # noqa: PLC0415  likewise

    parts = _UPSTREAM.split(text)
    if len(parts) == 1:
        return escape(text)
    linked = [Markup('<a href="{0}" rel="noreferrer">{0}</a>').format(part) for part in parts[1::2]]
    plain = [escape(part) for part in parts[::2]]
    return Markup("").join(piece for pair in zip_longest(plain, linked, fillvalue=Markup("")) for piece in pair)


def own(name: str) -> str:
    """Return a file of the templates' folder."""
    return (resources.files(__package__) / TEMPLATES / name).read_text(encoding="utf-8")


def digest(inline: str) -> str:
    """Return what a page's policy knows an inline style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
