"""Runs the notebooks from a clean kernel, and reads what their cells put out."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
DEADLINE_SECONDS = 120


class Tables(HTMLParser):
    """The cells of each row of a table in HTML, text only."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._inside = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.rows[-1][-1] += data


def run(name: str, folder: Path, **parameters: object) -> Any:
    """Run a notebook in `folder` from a kernel of its own, its parameters set as papermill sets them."""
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    (place,) = [i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", [])]
    given = "\n".join(f"{key} = {value!r}" for key, value in parameters.items())
    notebook.cells[place].source += f"\n{given}"
    NotebookClient(
        notebook, timeout=DEADLINE_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return notebook


def outputs(notebook: Any, kind: str) -> list[str]:
    """Return what the cells have put out of one MIME type, and their prints under "print"."""
    told = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    if kind == "print":
        return [o["text"] for o in told if o["output_type"] == "stream"]
    return [o["data"][kind] for o in told if kind in o.get("data", {})]


def facts(notebook: Any) -> dict[str, str]:
    """Return the first table: what the plan is."""
    return {r[0]: r[1] for r in Tables(outputs(notebook, "text/html")[0]).rows if len(r) == 2}
