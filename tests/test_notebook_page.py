"""The notebook of the documentation runs to its last cell, and shows what it says."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "docs" / "notebook.ipynb"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Source to outputs of each cell of code, after a run in a kernel of its own."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = str(tmp_path_factory.mktemp("notebook"))
    where = {"metadata": {"path": folder}}
    client = NotebookClient(notebook, timeout=120, resources=where)
    ran = client.execute()
    return {cell.source: cell.outputs for cell in ran.cells if cell.cell_type == "code"}


def shown(outputs, start):
    """What the one cell that starts so shows, by its type."""
    (found,) = (cell for source, cell in outputs.items() if source.startswith(start))
    return found[-1]["data"]


def test_it_has_no_outputs_of_its_own():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) == 15
    assert not any(cell.outputs or cell.execution_count for cell in code)


def test_every_cell_shows_what_it_is_for(outputs):
    assert "40 points" in shown(outputs, "design =")["text/html"]
    assert "95 % interval" in shown(outputs, "integral =")["text/html"]
    assert "lengthscale" in outputs["curves"][-1]["data"]["text/html"]
    assert shown(outputs, 'curves.bq.plot.curves("mmd"')["image/png"]
    assert shown(outputs, 'curves.bq.plot.heatmap("rate")')["image/png"]
    assert "<th>verdict</th>" in shown(outputs, "columns =")["text/html"]
    assert shown(outputs, "import tempfile")["text/plain"] == "True"


def test_nothing_but_the_progress_bar_is_written_beside_it(outputs):
    for source, cell in outputs.items():
        written = "".join(output["text"] for output in cell if output["output_type"] == "stream")
        assert ("80/80" in written) == source.startswith("curves = bqlib.curves(")
        assert "Warning" not in written
