"""What apply, verify and rollback do with a plan that has positions outside Kafka: nothing, whatever their names."""

from contextlib import nullcontext

import pytest

from migrate.model import Decision, Level, Scope
from migrate.plan.file import write_plan
from tests.builders import make_check, make_plan, make_position, make_row
from tests.fakes import FakeApplyEdges
from tests.unit.commands import clusters, plug_in, run
from tests.unit.plans import clusters as clusters_of

BLOCKED = {"decision": Decision.BLOCK, "reason": "spark-batch-open"}
OPEN = make_check("spark-batch-open", "job", scope=Scope.HOLDER, level=Level.BLOCK)
ROW = make_check("missing-on-target", "job/orders/0/position", scope=Scope.ROW, level=Level.BLOCK)
TOPIC = make_check("not-drained", "views", scope=Scope.TOPIC, level=Level.BLOCK)


@pytest.fixture
def applied(tmp_path, monkeypatch):
    """Apply a plan of the group `billing` and of these positions; the target's groups before and after."""

    def apply(*positions, checks=()):
        group = make_row("billing", "orders", 0)
        plan = make_plan(
            [group, *positions], checks=checks, source_cluster_id="source-id", target_cluster_id="target-id"
        )
        target, source = clusters_of(plan)
        edges = FakeApplyEdges(target, source)
        plug_in(monkeypatch, apply_session=lambda *_: nullcontext(edges), get_ready=lambda: None)
        write_plan(plan, tmp_path / "c.plan")
        cluster = clusters(tmp_path)
        given = ("--approve", plan.fingerprint, "--execute")
        results = {"apply": run("apply", str(tmp_path / "c.plan"), *cluster, *given)}
        after = {name: dict(target.held(name)) for name in ("billing", "job", "query")}
        results["verify"] = run("verify", str(tmp_path / "c.plan"), *cluster)
        results["rollback"] = run("rollback", str(tmp_path / "c.plan"), *cluster, *given)
        results["gone"] = {name: dict(target.held(name)) for name in ("billing", "job", "query")}
        return results, after

    return apply


@pytest.mark.parametrize(
    ("positions", "checks"),
    [
        ((make_position("job", "orders", 0, target_offset=5),), ()),
        ((make_position("billing", "orders", 0, target_offset=5),), ()),
        ((make_position("job", "orders", 0, target_offset=5, **BLOCKED),), (OPEN,)),
        ((make_position("job", "orders", 0, target_offset=5, **BLOCKED),), (ROW,)),
        ((make_position("job", "views", 0, target_offset=5, **BLOCKED),), (TOPIC,)),
    ],
    ids=["beside", "a group's name", "blocked", "blocked by a row", "blocked by a topic"],
)
def test_the_group_is_set_verified_and_brought_back_and_no_position_is_written(applied, positions, checks):
    results, after = applied(*positions, checks=checks)
    assert results["apply"].exit_code == 0, results["apply"].output
    assert after["billing"] == {("A.orders", 0): 650} and not after["job"] and not after["query"]
    assert results["verify"].exit_code == 0, results["verify"].output
    assert results["rollback"].exit_code == 0, results["rollback"].output
    assert results["gone"] == {"billing": {}, "job": {}, "query": {}}
