"""The inventory's notebook: run from a clean kernel on exported files alone."""

import pytest
from nbclient.exceptions import CellExecutionError

from tests.extras.inventory.unit.exportedfiles import write_inventory
from tests.notebooks import outputs, run

pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_inventory_runs_from_a_clean_kernel_on_exported_files_alone(tmp_path):
    write_inventory(tmp_path)
    before = sorted(tmp_path.iterdir())
    notebook = run("inventory.ipynb", tmp_path, HISTORY="history.csv")
    assert sorted(tmp_path.iterdir()) == before, "it writes nothing"
    assert len(outputs(notebook, "image/png")) == 4
    everything = " ".join(outputs(notebook, "text/html"))
    assert all(word in everything for word in ("Streams", "Connect sink", "billing", "wave"))


def test_a_missing_history_is_one_clear_line(tmp_path):
    with pytest.raises(CellExecutionError) as raised:
        run("inventory.ipynb", tmp_path, HISTORY="absent.csv")
    assert raised.value.ename == "ReviewStopped" and "absent.csv cannot be read" in raised.value.evalue
