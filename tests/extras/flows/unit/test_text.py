"""What became of a file's flows, at any width."""

import pytest

from migrate.extras.flows.text import MadePlan, made_lines

MADE = (
    MadePlan("orders", "READY TO APPLY: 40 offsets of 4 groups", 0, "plans/orders.plan", "a" * 12),
    MadePlan("bills", "BLOCKED: 2 of 9 groups; 7 others can be applied", 3, "p/bills.plan", "b" * 12),
    MadePlan("audit", "FAILED: C did not answer in 30 s. Check bootstrap.servers.", 1),
)  # fmt: skip


@pytest.mark.parametrize("width", [80, 200])
def test_every_flow_has_its_verdict_in_full_and_its_plan(width):
    lines = list(made_lines(MADE, width, colour=False))
    told = " ".join(" ".join(lines).split())
    for each in MADE:
        assert each.flow in told and each.verdict in told and each.path in told and each.fingerprint in told
    assert all(len(line) <= width for line in lines)


def test_a_flow_that_failed_is_counted_and_has_no_plan_to_show():
    text = "\n".join(made_lines(MADE, 200, colour=False))
    assert "2 plans written, 1 flow failed: no plan." in text
    assert "mm2-migrate show plans/orders.plan p/bills.plan" in text
    assert list(made_lines(MADE[2:], 80, colour=False))[-1] == "0 plans written, 1 flow failed: no plan."
