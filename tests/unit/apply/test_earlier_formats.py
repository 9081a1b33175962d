"""Plans that earlier versions wrote and applied: shown, verified and rolled back as ever, and never applied again.

The files are kept as those versions left them, journals too. Commands as they are typed, on a cluster in memory.
"""

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import Result

from migrate.apply.run import refuse_earlier_format
from migrate.errors import Refused
from migrate.model import Decision
from migrate.plan.file import read_plan
from migrate.plan.plan import FORMAT_VERSION, READABLE_FORMATS
from migrate.plan.totals import totals
from migrate.show.plan_table import next_steps
from tests.builders import make_plan, make_row
from tests.fakes import FakeApplyEdges, FakeCluster
from tests.unit.commands import clusters, run
from tests.unit.plans import clusters as clusters_of

KEPT = Path(__file__).parents[2] / "golden" / "plans"
EARLIER = [version for version in READABLE_FORMATS if version != FORMAT_VERSION]


class Kept:
    """A kept plan with its journal in a folder of its own, and the target as that version's apply left it."""

    def __init__(self, version: int, folder: Path) -> None:
        shutil.copytree(KEPT / f"format-{version}", folder, dirs_exist_ok=True)
        self.folder, self.path = folder, folder / "cutover.plan"
        self.plan = read_plan(self.path)
        self.target: FakeCluster = clusters_of(self.plan)[0]
        self.before = self.offsets()
        for row in self.plan.rows:
            if row.decision is Decision.SET and row.target_offset is not None:
                self.target.commit(row.group, row.target_topic, row.partition, row.target_offset, row.target_metadata)

    def offsets(self) -> dict[str, dict[tuple[str, int], int | None]]:
        return {group: dict(self.target.held(group)) for group in self.plan.groups()}

    def run(self, command: str, *options: str) -> Result:
        return run(command, str(self.path), *clusters(self.folder), *options)

    def execute(self, command: str) -> Result:
        return self.run(command, "--approve", self.plan.fingerprint, "--execute")


@pytest.fixture(params=EARLIER)
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    made = Kept(request.param, tmp_path)
    monkeypatch.setattr("migrate.cli.apply.apply_edges", lambda *arguments: nullcontext(FakeApplyEdges(made.target)))
    monkeypatch.setattr("migrate.cli.apply.get_ready", lambda: None)
    return made


def test_a_plan_of_every_earlier_format_is_kept():
    assert sorted(path.name for path in KEPT.iterdir()) == [f"format-{version}" for version in EARLIER]


def test_it_is_verified_as_it_was_applied(kept):
    shown = kept.run("verify")
    assert shown.exit_code == 0, shown.output


def test_it_is_rolled_back_to_what_was_there_before(kept):
    assert kept.offsets() != kept.before
    shown = kept.execute("rollback")
    assert shown.exit_code == 0, shown.output
    assert kept.offsets() == kept.before
    again = kept.execute("rollback")
    assert again.exit_code == 0 and kept.offsets() == kept.before, again.output


def test_its_undo_is_saved_in_the_format_of_today(kept):
    undo = kept.folder / "undo.plan"
    assert kept.run("rollback", "--out", str(undo)).exit_code == 0
    header = read_plan(undo).header
    assert header.format_version == FORMAT_VERSION and header.undoes == kept.plan.fingerprint


@pytest.mark.parametrize("execute", [False, True])
def test_it_is_not_applied_again_and_says_what_to_do(kept, execute):
    before = kept.offsets()
    shown = kept.execute("apply") if execute else kept.run("apply")
    assert shown.exit_code == 3 and kept.offsets() == before
    assert f"has plan format {kept.plan.header.format_version}" in shown.stderr
    assert "Make a new plan. If this one was applied in part, roll it back first." in shown.stderr


def test_show_prints_no_command_that_would_be_refused(kept):
    shown = run("show", str(kept.path))
    assert shown.exit_code == 0 and "mm2-migrate apply" not in shown.stdout
    assert f"This version does not apply plans of format {kept.plan.header.format_version}" in shown.stdout


def test_an_undo_of_an_earlier_format_is_to_be_made_anew_and_not_a_new_plan(tmp_path):
    undo = make_plan([make_row()], kind="undo", format_version=EARLIER[-1])
    (sentence,) = next_steps(undo, totals(undo), "undo.plan", ()).sentences
    with pytest.raises(Refused) as refused:
        refuse_earlier_format(undo, tmp_path / "undo.plan")
    for said in (sentence, refused.value.todo):
        assert "the undo anew, with `mm2-migrate rollback PLAN --out ANOTHER.plan`" in said


def test_the_report_offers_verify_and_rollback_but_not_apply(kept):
    page = kept.folder / "report.html"
    shown = run("report", str(kept.path), "--out", str(page))
    assert shown.exit_code == 0, shown.output
    text = page.read_text()
    assert "mm2-migrate verify" in text and "mm2-migrate rollback" in text and "--execute" not in text
