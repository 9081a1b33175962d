"""Both commands take their clusters from a flow of a flows.yaml, and say first which it is."""

import pytest

from tests.unit.commands import run_in_flow

DATA = [("history", "--format", "csv"), ("export", "--format", "jsonl", "--out", "x")]


@pytest.mark.parametrize("words", [("history",), *DATA], ids=" ".join)
def test_which_flow_it_is_comes_first_and_never_into_data(tmp_path, monkeypatch, words):
    ran, asked = run_in_flow(tmp_path, monkeypatch, "groups", *words)
    assert ran.exit_code == 1 and [(o.source, o.target) for o in asked] == [("A", "B")]
    shown, silent = (ran.stderr, ran.stdout) if words in DATA else (ran.stdout, "")
    assert shown.startswith("Flow eu of flows.yaml: A -> B.") and not silent
