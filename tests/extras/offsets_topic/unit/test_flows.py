"""Both commands take their clusters from a flow of a flows.yaml, and say first which it is."""

import pytest

from migrate.cli import flows
from migrate.errors import ClusterError
from tests.unit.commands import run

DATA = [("history", "--format", "csv"), ("export", "--format", "jsonl", "--out", "x")]


@pytest.mark.parametrize("words", [("history",), *DATA], ids=" ".join)
def test_which_flow_it_is_comes_first_and_never_into_data(tmp_path, monkeypatch, words):
    asked = []

    def resolve(options):
        asked.append(options)
        raise ClusterError("No cluster is asked here.")

    monkeypatch.setattr(flows, "resolve_flow", resolve)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flows.yaml").write_text("flows: [{name: eu, mm2_config: mm2.properties, source: A, target: B}]")
    ran = run("groups", *words, "--flow", "eu")
    assert ran.exit_code == 1 and [(o.source, o.target) for o in asked] == [("A", "B")]
    shown, silent = (ran.stderr, ran.stdout) if words in DATA else (ran.stdout, "")
    assert shown.startswith("Flow eu of flows.yaml: A -> B.") and not silent
