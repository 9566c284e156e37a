"""examples/simulate.ipynb gives what stands in it when it is run. TILEWRIGHT_REBASE=1 writes what it gives now."""

import os
import pathlib
import sys

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("numpy")

NOTEBOOK = pathlib.Path(__file__).resolve().parents[3] / "examples/simulate.ipynb"
MOST_BYTES = 300_000


def run(notebook, monkeypatch, folder):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
    client.kernel_name = "python3"
    return client.execute()


def outputs(notebook):
    """By cell: what is shown, without the counts and times of the run."""
    return {cell["id"]: [{key: each[key] for key in ("data", "text", "ename") if key in each}
                         for each in cell["outputs"]] for cell in notebook.cells if cell.cell_type == "code"}


def test_the_notebook_gives_what_stands_in_it(monkeypatch, tmp_path):
    committed = nbformat.read(NOTEBOOK, as_version=4)
    made = run(nbformat.read(NOTEBOOK, as_version=4), monkeypatch, tmp_path)
    if os.environ.get("TILEWRIGHT_REBASE") == "1":
        for cell in made.cells:
            cell.get("metadata", {}).pop("execution", None)
        made.metadata.get("language_info", {}).clear()
        made.metadata["language_info"] = {"name": "python"}
        nbformat.write(made, NOTEBOOK)
        return
    assert outputs(made) == outputs(committed)
    assert NOTEBOOK.stat().st_size < MOST_BYTES
    assert "</svg>" in NOTEBOOK.read_text() and "race on shared" in NOTEBOOK.read_text()
