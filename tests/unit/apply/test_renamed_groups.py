"""Plans whose groups are called otherwise on the target: what is written, kept in the journal, undone and told."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from migrate.model import LogRange
from migrate.plan.companions import journal_path
from migrate.plan.file import read_plan, write_plan
from tests.fakes import FakeApplyEdges, FakeClock, FakeCluster
from tests.unit.commands import plug_in, run_on_plan
from tests.unit.plans import plan, row

FLOW = SimpleNamespace(source=None, target=None, synced=lambda groups: frozenset())


class Night:
    """A plan of `g`, which is `g-eu` on the target, and of `h`, which keeps its name; and the commands on it."""

    def __init__(self, folder, monkeypatch):
        self.path = folder / "cutover.plan"
        no_log = {"source_log_start": None, "source_log_end": None}
        self.plan = plan(
            row("g", target_group="g-eu", target_prior=10, **no_log),
            row("g", partition=1, target_group="g-eu", **no_log), row("h", **no_log),
            source_down=True, source_cluster_id="",
        )  # fmt: skip
        write_plan(self.plan, self.path)
        ranges = {each.target_partition: LogRange(0, 100) for each in self.plan.rows}
        self.target = FakeCluster(ids=dict(self.plan.header.target_topic_ids), ranges=ranges)
        self.target.commit("g-eu", "A.orders", 0, 10)
        self.target.commit("g", "A.orders", 0, 77)
        edges = nullcontext(FakeApplyEdges(self.target))
        plug_in(monkeypatch, apply_session=lambda *_: edges, get_ready=lambda: None, SystemClock=FakeClock)

    def run(self, command, path=None, **options):
        if options.get("execute"):
            options["approve"] = read_plan(path or self.path).fingerprint
        lines, code = run_on_plan(command, path or self.path, FLOW, **options)
        return "\n".join(lines), code

    def held(self):
        return {group: {p: o for (_, p), o in self.target.held(group).items()} for group in ("g", "g-eu", "h")}


BEFORE = {"g": {0: 77}, "g-eu": {0: 10}, "h": {}}
APPLIED = {"g": {0: 77}, "g-eu": {0: 60, 1: 60}, "h": {0: 60}}


@pytest.fixture
def night(tmp_path, monkeypatch):
    return Night(tmp_path, monkeypatch)


def test_apply_and_rollback_write_under_the_new_name_and_both_names_are_printed_and_in_the_journal(night):
    assert night.held() == BEFORE
    said, code = night.run("apply", execute=True)
    assert (code, night.held()) == (0, APPLIED)
    assert "g -> g-eu" in said and "h -> " not in said
    lines = journal_path(night.path, night.plan.fingerprint).read_text().splitlines()
    events = [json.loads(line) for line in lines]
    named = {(event["event"], event["group"], event.get("target_group")) for event in events if "group" in event}
    kinds = ("backup", "intent", "outcome", "readback")
    assert named == {(kind, *names) for kind in kinds for names in (("g", "g-eu"), ("h", None))}
    assert night.run("verify")[1] == 0
    document = json.loads(night.run("verify", form="json")[0])
    assert {offset["group"]: offset["target_group"] for offset in document["offsets"]} == {"g": "g-eu", "h": ""}
    night.target.commit("g-eu", "A.orders", 0, 20)
    said, code = night.run("verify")
    assert code == 1 and "g -> g-eu A.orders:0" in said
    night.target.commit("g-eu", "A.orders", 0, 60)
    said, code = night.run("rollback", execute=True)
    assert (code, night.held()) == (0, BEFORE) and "g -> g-eu" in said
