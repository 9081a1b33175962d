"""`sign`: names beside a plan, counted once each, and a plan that asks for them is not applied without."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from migrate.apply.signatures import names_of, person, refusal, signature_of, signatures_beside, signatures_path
from migrate.plan.file import write_plan
from migrate.plan.plan import signatures_required
from tests.builders import make_plan, make_row
from tests.unit import plans
from tests.unit.commands import run
from tests.unit.nights import ends, night_on
from tests.unit.plans import plan, row

NOW = "2026-11-21T02:00:00.000Z"
PLAN = make_plan([make_row()], settings={"require-signatures": "2"})


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    write_plan(PLAN, tmp_path / "cutover.plan")
    return tmp_path / "cutover.plan"


def sign(path: Path, name: str, note: str = "") -> Result:
    return run("sign", str(path), "--by", name, "--note", note)


def names(path: Path) -> list[str]:
    return [signature.name for signature in signatures_beside(path, PLAN.fingerprint)]


def test_a_signature_holds_the_whole_fingerprint_the_name_the_note_and_the_time(plan_file):
    shown = sign(plan_file, "Ada Byron", "read rows of billing")
    assert shown.exit_code == 0, shown.stderr
    file = signatures_path(plan_file, PLAN.fingerprint)
    assert file.name == f"cutover.plan.{PLAN.fingerprint[:32]}.signatures.jsonl"
    (line,) = file.read_text().splitlines()
    told = json.loads(line)
    assert (told["fingerprint"], told["name"], told["note"]) == (PLAN.fingerprint, "Ada Byron", "read rows of billing")
    assert told["time"].endswith("Z") and file.stat().st_mode & 0o777 == 0o600


@given(st.lists(st.sampled_from(["Ada", "ada", "Bob", "BOB ", "Cy"]), max_size=6), st.integers(0, 4))
def test_a_plan_may_be_written_exactly_if_as_many_different_names_stand_as_it_asks_for(names, required):
    plan = make_plan([make_row()], settings={"require-signatures": str(required)} if required else {})
    assert signatures_required(plan.header.settings) == required
    signatures = [signature_of(plan.fingerprint, name, "", NOW) for name in names]
    different = len({name.strip().lower() for name in names})
    assert len(names_of(signatures)) == different
    assert (refusal(plan, Path("cutover.plan"), signatures) is None) == (different >= required)


def test_a_plan_with_too_few_names_is_shown_whole_by_a_dry_run_and_never_executed(tmp_path, monkeypatch):
    night = night_on(tmp_path, monkeypatch)
    unsigned = plan(
        row("g", source_log_start=None, source_log_end=None), source_down=True, source_cluster_id="",
        settings={"require-signatures": "2"},
    )  # fmt: skip
    path = tmp_path / "cutover.plan"
    write_plan(unsigned, path)
    night.target.ranges = plans.clusters(unsigned)[0].ranges
    sign(path, "Ada")
    asks = "asks for 2 signatures of different names, and has 1 of 2 (Ada)", f"mm2-migrate sign {path} --by NAME"
    dry = night.run("apply", path.name)
    ends(dry, 3, *asks, "DRY RUN: 1 offset of 1 group would be set")
    assert dry.stdout.startswith("REFUSED: ") and "--execute" not in dry.stdout
    calls = night.target.calls.total()
    ends(night.execute("apply", path.name), 3, *asks)
    assert night.target.calls.total() == calls and not list(tmp_path.glob("*.journal.jsonl"))


OF_ANOTHER_PLAN = json.dumps(asdict(signature_of("f" * 64, "Eve", "", NOW))).encode() + b"\n"


@pytest.mark.parametrize(
    ("damage", "said"),
    [*((line, "Line 2 of the signatures") for line in (b"not json\n", b"[]\n", b'{"name": 1}\n', b'{"name":"x"}\n')),
     (OF_ANOTHER_PLAN, "is for plan")],
)  # fmt: skip
def test_a_line_that_is_damaged_or_signs_another_plan_is_told_and_not_passed_over(plan_file, damage, said):
    sign(plan_file, "Ada")
    file = signatures_path(plan_file, PLAN.fingerprint)
    file.write_bytes(file.read_bytes() + damage)
    shown = sign(plan_file, "Bob")
    assert shown.exit_code == 1 and said in shown.stderr


def test_a_line_that_a_crash_tore_off_is_no_signature_and_harms_no_later_one(plan_file):
    sign(plan_file, "Ada")
    file = signatures_path(plan_file, PLAN.fingerprint)
    file.write_bytes(file.read_bytes() + b'{"time":"2026-11-')
    assert names(plan_file) == ["Ada"]
    sign(plan_file, "Bob")
    assert names(plan_file) == ["Ada", "Bob"]


# Zero width, filler, joiner, variation selector, tag, blank, spaces of other kinds, a turned direction.
UNSEEN = "\u200b\u034f\u115f\u3164\uffa0\u2060\u180b\u17b4\ufe0f\U000e0041\U000e0100\u2800\u00a0\u202e"


@pytest.mark.parametrize(
    "name", ["", "  ", "a\nb", "\x1b[2J", "x" * 201, *(f"Ada{each}" for each in UNSEEN)], ids=ascii
)
def test_a_name_that_is_none_or_has_a_character_that_nobody_sees_is_wrong_use(plan_file, name):
    shown = sign(plan_file, name)
    assert shown.exit_code == 2 and not names(plan_file), shown.stdout
    assert "invisible characters" in shown.stderr or not name.startswith("Ada")


@pytest.mark.parametrize(
    ("one", "other"),
    [("\u01f0", "J\u030c"), ("\u0390", "\u0399\u0308\u0301"), ("\uff21\uff44\uff41", "ada"),
     ("Stra\u00dfe", "STRASSE"), ("\u1fb3\u0301", "\u0391\u0345\u0301"), ("\u212b", "\u00e5"), ("\u2460", "1")],
    ids=ascii,
)  # fmt: skip
def test_names_that_unicode_takes_for_the_same_count_once(one, other):
    assert person(one) == person(other)
