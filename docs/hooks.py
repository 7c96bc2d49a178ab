"""What the site has besides the pages of this folder: one per public function, and those of the repository."""

from __future__ import annotations

import posixpath
import re
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import htagraph as hg
from htagraph.output.schema import COMMANDS, json_schema

__all__ = ["on_config", "on_files", "on_page_markdown"]

REPOSITORY = Path(__file__).parents[1]
ELSEWHERE = {
    "ARCHITECTURE.md": "project/ARCHITECTURE.md",
    "CONTRIBUTING.md": "project/CONTRIBUTING.md",
    "CHANGELOG.md": "project/CHANGELOG.md",
    "README.md": "index.md",
    "data/README.md": "project/data.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
"""Pages of the repository that lie outside docs/, and where they are on the site."""
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_REFERENCE = re.compile(r"#/\$defs/(\w+)")
_NAMED = re.compile(r"`hg\.([\w.]+)(\([^`]*\))?`")


def public() -> dict[str, str]:
    """Return where each public function and class is defined, by its name in `hg` or in a namespace of it."""
    found = {}
    for name in dir(hg):
        value = getattr(hg, name)
        names = [f"{name}.{each}" for each in value.__all__] if isinstance(value, ModuleType) else [name]
        for each in names:
            thing: Any = attrgetter(each)(hg)
            if hasattr(thing, "__qualname__"):
                found[each] = f"{thing.__module__}.{thing.__qualname__}"
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


PUBLIC = public()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of functions and decisions under their headings."""
    decisions = sorted(path.name for path in (REPOSITORY / "docs" / "decisions").glob("[0-9]*.md"))
    for section in config.nav or []:
        if "Functions" in section:
            classes = [name for name in PUBLIC if name.rpartition(".")[2][0].isupper()]
            figures = [name for name in PUBLIC if name.startswith("plot.")]
            section["Functions"] += [
                {name: f"functions/{name}.md"} for name in PUBLIC if name not in (*classes, *figures)
            ]
            for title, names in (("Figures", figures), ("Classes", classes)):
                section["Functions"].append({title: [{name: f"functions/{name}.md"} for name in names]})
        if "Project" in section:
            section["Project"][-1]["Decisions"] += [f"decisions/{name}" for name in decisions]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each function and class, and those of the repository."""
    for name, path in PUBLIC.items():
        picture, figure = f"img/figures/{name}.svg", f"plot.{name.replace('.', '_')}"
        has_picture = figure in PUBLIC and (REPOSITORY / "docs" / picture).is_file()
        shown = f"## Figure\n\n[`hg.{figure}`]({figure}.md) draws it:\n\n![hg.{figure}](../{picture})\n" * has_picture
        text = f"::: {path}\n    options:\n      heading: hg.{name}\n      toc_label: hg.{name}\n\n{shown}"
        files.append(File.generated(config, f"functions/{name}.md", content=text))
    for source, uri in ELSEWHERE.items():
        if files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(REPOSITORY / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with links to where things are on the site; what is not there is named without a link."""
    del config
    uri = page.file.src_uri
    if uri.startswith("functions/"):
        return markdown
    if uri == "reference/functions.md":
        markdown = _NAMED.sub(_to_function, markdown)
    if uri == "reference/json.md":
        markdown += _tables()
    here = {there: source for source, there in ELSEWHERE.items() if there != "index.md"}.get(uri, f"docs/{uri}")
    return _LINK.sub(lambda found: _on_the_site(found, here, uri, files), markdown)


def _on_the_site(found: re.Match[str], here: str, uri: str, files: Files) -> str:
    """Return a link to where its target is on the site; what is only in the repository is named without a link."""
    text, target, anchor = found.groups(default="")
    file = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
    if "://" in target or not (REPOSITORY / file).exists():
        return found[0]
    there = ELSEWHERE.get(file, file.removeprefix("docs/") if file.startswith("docs/") else "")
    there = posixpath.join(there, "README.md") if (REPOSITORY / file).is_dir() and there else there
    if not there or files.get_file_from_path(there) is None:
        return text
    return f"[{text}]({posixpath.relpath(there, posixpath.dirname(uri) or '.')}{anchor})"


def _tables() -> str:
    """Return what the results of each command hold, from their schema."""
    text = "\n## Results of each command\n\nIn *italics*: what is not always there.\n"
    for command in COMMANDS:
        schema = json_schema(command)
        parts = schema["$defs"]
        found = _REFERENCE.search(str(schema["properties"].get("results")))
        results = parts[found[1]] if found else schema  # `validate` and `schema` have no envelope
        text += f"\n### {command}\n\n| result | what is in it |\n|---|---|\n"
        for name, what in results["properties"].items():
            found = _REFERENCE.search(str(what))
            inside = "a row: " + _names(parts[found[1]]) if found else what.get("description", "")
            text += f"| {_marked(name, results)} | {inside} |\n"
    return text


def _names(part: dict[str, Any]) -> str:
    return ", ".join(_marked(name, part) for name in part["properties"])


def _marked(name: str, part: dict[str, Any]) -> str:
    return f"`{name}`" if name in part.get("required", ()) else f"*`{name}`*"


def _to_function(found: re.Match[str]) -> str:
    """Return what a row names as a link to its page."""
    name = found[1].split(".from_frames")[0]
    return f"[{found[0]}](../functions/{name}.md)" if name in PUBLIC else found[0]
