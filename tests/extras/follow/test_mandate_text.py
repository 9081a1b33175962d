"""A mandate as it is read before it is approved: all that it allows, and every name that it gives."""

import pytest

from migrate.extras.follow.mandate_text import mandate_lines, mandate_verdict
from migrate.survey.policies import Waiver
from tests.extras.follow.followscene import mandated
from tests.unit.surveyscene import FLOW

PLAN = mandated(FLOW, (Waiver("group-sync", "g"),), group=("bill.*",), moving_group=("flink",), max_fetch=500)


def text(lines) -> str:
    return "\n".join(lines)


def test_a_blank_that_nobody_would_see_in_a_name_and_an_escape_are_shown():
    odd = (("orders", "orders ", False), ("a\x1b[2J", "b", False))
    shown = text(mandate_lines(mandated(FLOW, group_map=odd), "follow.plan", 200, False))
    assert 'orders -> "orders "' in shown and "\x1b" not in shown


def test_a_mandate_says_every_name_that_it_gives_as_far_as_there_is_room():
    some = tuple((f"g{n}", f"h{n}", False) for n in range(60))
    shown = " ".join(text(mandate_lines(mandated(FLOW, group_map=some), "follow.plan", 200, False)).split())
    assert (
        "g0 -> h0; g1 -> h1;" in shown
        and "g39 -> h39 and 20 more; `show --format json` has them all" in shown
        and "g40" not in shown
    )


def test_a_mandate_shows_all_that_it_allows_before_anybody_approves_it():
    shown = text(mandate_lines(PLAN, "follow.plan", 200, False))
    assert shown.startswith(mandate_verdict(PLAN)) and PLAN.fingerprint in shown
    for said in ("bill.*", "exact, bounded", "1000000 records", "500 bytes", "flink", "group-sync:g", "id-a", "id-b"):
        assert said in shown
    assert "May skip" not in shown and "a group is set whole or not at all" in shown
    plain = text(mandate_lines(mandated(FLOW, named_groups=("a", "b"), exclude_group=("x",)), "p", 200, False))
    assert "all, of the 2 names of a groups file: a, b, not x" in plain and "Moving" not in plain


@pytest.mark.parametrize(("untranslatable", "told"), [
    (("block", "source-topic-missing=skip"), "source-topic-missing: such partitions are left out"),
    (("skip",), "every reason: such partitions are left out"),
    (("skip", "source-topic-missing=block"), "every reason but source-topic-missing: such partitions are left out"),
])  # fmt: skip
def test_whoever_approves_a_mandate_reads_what_it_may_skip(untranslatable, told):
    shown = text(mandate_lines(mandated(FLOW, untranslatable=untranslatable), "follow.plan", 200, False))
    assert "May skip " in shown and told in shown and "set whole in the partitions that are not skipped" in shown
