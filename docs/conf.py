"""The site: ``nox -s docs``. Pages are plain Markdown as GitHub shows it; the way through them is ``docs/index.md``."""

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
HARNESS = PROJECT / "harness"

project = "TorchScript upgrade gate"
author = "the authors of the TorchScript upgrade gate"
release = version = re.search(r'__version__ = "([^"]+)"', (HARNESS / "__init__.py").read_text())[1]
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "fixtures/*.md", "golden/*.md"]
exclude_patterns = [".*", "**/__pycache__", "reports", "site", "tests", "harness"]  # not even walked

myst_heading_anchors = 6  # as GitHub makes them
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]  # a page may begin at any level
html_theme = "furo"
html_title = f"{project} {release}"
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "sidebar/search.html", "sidebar/scroll-start.html"),
        *("sidebar/versions.html", "sidebar/navigation.html", "sidebar/scroll-end.html"),
    ]
}
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

LINKS = re.compile(r"\[[^\]]+\]\(([^)#\s]+\.md)\)")
OLDER = "docs/adr/README"


def add_way(app, docname, source):
    """Give the first page its table of contents: the links of each of its parts, in their order."""
    if docname == root_doc:
        source[0] = "".join(part + _toctree(part, docname) for part in re.split(r"(?m)^(?=## )", source[0]))
    elif docname == OLDER:
        source[0] += _toctree(source[0], docname)
    if docname.startswith("docs/"):  # who reads a site has installed the gate, as hatch_build.py has it
        source[0] = source[0].replace(f"python -m {HARNESS.name}", "torchscript-gate")


def _toctree(part, docname):
    names = [name.removesuffix(".md") for name in LINKS.findall(part)]
    caption = re.match(r"## (.+)", part)
    if not names or (caption is None and docname == root_doc):
        return ""
    told = f":caption: {caption[1]}\n" if caption else ""
    return f"\n\n```{{toctree}}\n:hidden:\n{told}\n" + "\n".join(names) + "\n```\n\n"


def add_entrance(app, exception):
    """Let the folder itself lead to the first page."""
    if exception is None:
        first = f'<!doctype html><title>{project}</title><meta http-equiv="refresh" content="0; url={root_doc}.html">\n'
        (Path(app.outdir) / "index.html").write_text(first, encoding="utf-8")


def setup(app):
    """Register what is above."""
    app.connect("source-read", add_way)
    app.connect("build-finished", add_entrance)
    return {"parallel_read_safe": True}
