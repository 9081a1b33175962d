"""A plan as a value: what its fingerprint covers, and what blocks it."""

from dataclasses import fields, replace

import pytest

from migrate.errors import UsageError
from migrate.model import Decision, Level, Row, Scope
from migrate.plan.plan import UNDO, Header, Plan, refuse_rules
from migrate.row_table import PlanRows
from tests.builders import make_check, make_header, make_plan, make_row


def another(value):
    if isinstance(value, dict):
        return {"x": 1}
    return value + 1 if isinstance(value, int) else "other" if isinstance(value, str) else 1


@pytest.mark.parametrize("name", Row._fields)
def test_every_field_of_a_row_is_in_the_fingerprint(name):
    row = make_row()
    changed = row._replace(**{name: another(getattr(row, name))})
    assert make_plan([changed]).fingerprint != make_plan([row]).fingerprint


@pytest.mark.parametrize("name", [f.name for f in fields(Header)])
def test_every_field_of_the_header_is_in_the_fingerprint(name):
    header, rows = make_header(), PlanRows(())
    other = (make_check(),) if name == "checks" else another(getattr(header, name))
    assert Plan(replace(header, **{name: other}), rows).fingerprint != Plan(header, rows).fingerprint


def test_only_what_was_in_trouble_when_the_plan_was_made_is_accepted():
    waived = make_check(subject="live", level=Level.WARN, counts_as=Level.WARN, accepted=True)
    plan = make_plan([make_row("live"), make_row("idle")], checks=(waived,))
    assert plan.accepted(waived.check, "live") and not plan.accepted(waived.check, "idle")
    assert not plan.accepted("another-check", "live") and plan.is_clean()


def test_a_blocked_row_blocks_its_group_and_a_plan_with_one_is_not_clean():
    plan = make_plan([make_row("b"), make_row("b", partition=1, decision=Decision.BLOCK), make_row("g")])
    assert plan.blocked_groups() == {"b"} and not plan.is_clean()
    assert {group: len(rows) for group, rows in plan.groups().items()} == {"b": 2, "g": 1}


def test_a_plan_of_nothing_is_not_clean_but_an_undo_of_nothing_is():
    assert make_plan([]).is_empty and not make_plan([]).is_clean()
    assert make_plan([], kind=UNDO).is_clean() and make_plan([], kind="rules").is_clean()
    with pytest.raises(UsageError, match="holds rules for `rules`, and apply is for rows"):
        refuse_rules(make_plan([], kind="rules"), "apply")


def test_a_block_of_a_cluster_is_of_the_cluster_alone():
    whole = make_check("clusters-differ", "B", scope=Scope.CLUSTER)
    group = make_check("share-group", "shared", scope=Scope.GROUP)
    waived = replace(whole, level=Level.WARN, counts_as=Level.WARN, accepted=True)
    plan = make_plan([make_row()], checks=(group, whole))
    assert plan.cluster_blocks() == (whole,) and plan.blocks_without_rows() == (group,)
    assert make_plan([make_row()], checks=(group, waived)).cluster_blocks() == ()
