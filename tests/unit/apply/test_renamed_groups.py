"""Plans whose groups are called otherwise on the target: what is written, kept in the journal, undone and told."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

from migrate.model import LogRange
from migrate.plan.companions import journal_path
from migrate.plan.file import write_plan
from tests.fakes import FakeApplyEdges, FakeClock, FakeCluster
from tests.unit.commands import plug_in, run_on_plan
from tests.unit.plans import plan, row

FLOW = SimpleNamespace(source=None, target=None, synced=lambda groups: frozenset())
BEFORE = {"g": {0: 77}, "g-eu": {0: 10}, "h": {}}
APPLIED = {"g": {0: 77}, "g-eu": {0: 60, 1: 60}, "h": {0: 60}}


def test_apply_and_rollback_write_under_the_new_name_and_both_names_are_printed_and_in_the_journal(
    tmp_path, monkeypatch
):
    """`g` is `g-eu` on the target, and `h` keeps its name."""
    no_log = {"source_log_start": None, "source_log_end": None}
    of_g = {"target_group": "g-eu"} | no_log
    rows = row("g", target_prior=10, **of_g), row("g", partition=1, **of_g), row("h", **no_log)
    made = plan(*rows, source_down=True, source_cluster_id="")
    path = tmp_path / "cutover.plan"
    write_plan(made, path)
    ranges = {each.target_partition: LogRange(0, 100) for each in made.rows}
    target = FakeCluster(ids=dict(made.header.target_topic_ids), ranges=ranges)
    target.commit("g-eu", "A.orders", 0, 10)
    target.commit("g", "A.orders", 0, 77)
    edges = nullcontext(FakeApplyEdges(target))
    plug_in(monkeypatch, apply_session=lambda *_: edges, get_ready=lambda: None, SystemClock=FakeClock)

    def run(command, **options):
        lines, code = run_on_plan(command, path, FLOW, **options)
        return "\n".join(lines), code

    def held():
        return {group: {p: o for (_, p), o in target.held(group).items()} for group in ("g", "g-eu", "h")}

    assert held() == BEFORE
    write = {"execute": True, "approve": made.fingerprint}
    said, code = run("apply", **write)
    assert (code, held()) == (0, APPLIED)
    assert "g -> g-eu" in said and "h -> " not in said
    events = map(json.loads, journal_path(path, made.fingerprint).read_text().splitlines())
    named = {(event["event"], event["group"], event.get("target_group")) for event in events if "group" in event}
    kinds = ("backup", "intent", "outcome", "readback")
    assert named == {(kind, *names) for kind in kinds for names in (("g", "g-eu"), ("h", None))}
    assert run("verify")[1] == 0
    document = json.loads(run("verify", form="json")[0])
    assert {offset["group"]: offset["target_group"] for offset in document["offsets"]} == {"g": "g-eu", "h": ""}
    target.commit("g-eu", "A.orders", 0, 20)
    said, code = run("verify")
    assert code == 1 and "g -> g-eu A.orders:0" in said
    target.commit("g-eu", "A.orders", 0, 60)
    said, code = run("rollback", **write)
    assert (code, held()) == (0, BEFORE) and "g -> g-eu" in said
