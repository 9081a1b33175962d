"""`sign` says what was signed and how many names there are; `apply` refuses a plan with too few."""

from pathlib import Path

import pytest

from migrate.apply.signatures import refusal, signatures_beside
from migrate.cli.sign import run_sign
from migrate.plan.file import read_plan, write_plan
from tests.builders import make_plan, make_row


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "my cutover.plan"
    write_plan(make_plan([make_row()], settings={"require-signatures": "2"}), path)
    return path


def test_a_signature_is_confirmed_with_the_fingerprint_and_with_what_is_still_missing(plan_file):
    lines = run_sign(plan_file, "Ada", "read it")
    assert run_sign(plan_file, "ADA", "")[0] == "SIGNED by ADA (again: a name counts once)"
    assert lines[0] == "SIGNED by Ada" and lines[1].endswith(read_plan(plan_file).fingerprint)
    assert "1 of 2" in lines[3]


def test_a_plan_with_too_few_names_is_refused_with_the_command_that_signs_it(plan_file):
    plan = read_plan(plan_file)
    for name in ("Ada", "Bob"):
        refused = refusal(plan, plan_file, signatures_beside(plan_file, plan.fingerprint))
        assert refused is not None and f"mm2-migrate sign '{plan_file}'" in refused.todo
        run_sign(plan_file, name, "")
    assert refusal(plan, plan_file, signatures_beside(plan_file, plan.fingerprint)) is None
    assert refusal(make_plan([make_row()]), plan_file, ()) is None, "it asks for none"
