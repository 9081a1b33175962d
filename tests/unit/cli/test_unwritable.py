"""A folder that takes no file: one paragraph, the right exit code, and nothing left behind."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.apply.assess import ApplyClusters, RunOptions
from migrate.apply.engine import ApplyResult, apply_plan
from migrate.apply.history import APPLY
from migrate.apply.journal import Journal, journal_path
from migrate.apply.signatures import read_signatures, signatures_path
from migrate.cli.sign import run_sign
from migrate.errors import MigrateError
from migrate.plan.file import write_plan
from tests.builders import make_plan, make_row
from tests.fakes import NoProgress
from tests.integration.cli import REPOSITORY, Ran, run
from tests.unit.applyscene import three_groups
from tests.unit.commands import clusters
from tests.unit.folders import fill, give_away, held, small_disk, without_root_powers

READ_ONLY, CLOSED, FULL, GONE = "read-only", "another's, closed", "on a full disk", "gone"
WHY = {
    READ_ONLY: "Permission denied",
    CLOSED: "Permission denied",
    FULL: "No space left on device",
    GONE: "there is no folder",
}
PLAN = make_plan([make_row(group="billing"), make_row(group="refunds")])
# Where the clusters are said to be. Nobody is there: a command that asks them would say so.
NOWHERE = "127.0.0.1:1"


@dataclass
class Ground:
    """A folder that can be written, with a plan, and one that cannot."""

    folder: Path
    bad: Path
    world: str
    under: tuple[str, ...]
    before: dict[str, bytes]

    def run(self, *words: str) -> Ran:
        return run(*words, folder=self.folder, launcher=self.under)

    def unchanged(self) -> bool:
        return held(self.bad) == self.before


@pytest.fixture(params=WHY)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    world = request.param
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    write_plan(PLAN, good / "cutover.plan")
    with ExitStack() as stack:
        if world != GONE:
            bad.mkdir()
            if world == FULL:
                stack.enter_context(small_disk(bad, 8))
            write_plan(PLAN, bad / "cutover.plan")
        if world == FULL:
            fill(bad)
        elif world == READ_ONLY:
            bad.chmod(0o555)
            stack.callback(bad.chmod, 0o755)
        elif world == CLOSED:
            give_away(bad)
            bad.chmod(0o700)
        yield Ground(good, bad, world, () if world in (FULL, GONE) else without_root_powers(), held(bad))


@pytest.mark.parametrize("command", ["plan", "rollback", "report"])
def test_what_cannot_be_written_is_said_before_anybody_is_asked_and_nothing_is_left(ground, command):
    out, where = ground.bad / "new", clusters(ground.folder) if command != "report" else ()
    if command == "rollback":
        scene = three_groups(ground.folder)
        write_plan(scene.plan, ground.folder / "cutover.plan")
        assert scene.apply().exit_code == 0
    before = held(ground.folder)
    ran = ground.run(command, *["cutover.plan"] * (command != "plan"), *where, "--out", str(out))
    said = ran.expect(2 if ground.world == GONE else 1).complaint()
    assert WHY[ground.world] in said and str(out) in said and "--out" in said
    assert ran.stderr.startswith("mm2-migrate: ") and NOWHERE not in ran.stderr, "nobody was asked"
    assert ran.stdout == "" and ground.unchanged() and held(ground.folder) == before


def test_a_signature_that_can_not_be_written_is_none(ground: Ground) -> None:
    ran = ground.run("sign", str(ground.bad / "cutover.plan"), "--by", "Ada").expect(2 if ground.world == GONE else 1)
    why = "No such file" if ground.world == GONE else WHY[ground.world]
    assert why in ran.complaint() and str(ground.bad) in ran.complaint() and ran.stdout == ""
    if ground.world == FULL:
        # Nobody has signed, though the file is there; and with room again the same command works.
        assert read_signatures(signatures_path(ground.bad / "cutover.plan", PLAN.fingerprint), PLAN.fingerprint) == ()
        (ground.bad / "filler").unlink()
        assert "SIGNED by Ada" in run_sign(ground.bad / "cutover.plan", "Ada", "")[0]
    else:
        assert ground.unchanged()


@pytest.mark.parametrize("ground", [READ_ONLY, FULL], indirect=True)
def test_what_only_reads_works_where_nothing_can_be_written(ground: Ground) -> None:
    for words in (["show"], ["show", "--format", "json"], ["explain", "billing"]):
        assert "billing" in ground.run(words[0], str(ground.bad / "cutover.plan"), *words[1:]).expect(0).stdout
    assert ground.unchanged()


def gone_folder(folder: Path) -> tuple[str, ...]:
    """The words that run a command in a folder that is deleted under it."""
    (folder / "deleted").mkdir()
    return ("sh", "-c", f'cd "{folder}/deleted" && rmdir "{folder}/deleted" && exec "$0" "$@"')


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan", "--request-timeout", "1"], "The plan cannot be written to cutover.plan: the working folder is gone"),
        (["report"], "The report cannot be written to report.html: the working folder is gone"),
    ],
)
def test_in_a_working_folder_that_is_gone_what_goes_there_is_refused(tmp_path, words, said):
    write_plan(PLAN, tmp_path / "c.plan")
    where = clusters(tmp_path) if words[0] == "plan" else [str(tmp_path / "c.plan")]
    ran = run(*words, *where, folder=tmp_path, launcher=gone_folder(tmp_path))
    assert said in ran.expect(2).complaint() and NOWHERE not in ran.stderr


def test_a_missing_working_folder_is_never_called_a_fault_of_ours(tmp_path: Path) -> None:
    code = "from pathlib import Path; from migrate.cli.console import one_paragraph; one_paragraph(Path.cwd)()"
    ran = run(
        folder=tmp_path, launcher=gone_folder(tmp_path), program=(sys.executable, "-c", code),
        environment={"PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert ran.expect(1).stderr.startswith("mm2-migrate: The working folder is gone. Change to one that exists")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["report", "cutover.plan", "--out", "/dev/stdout"], 3),
        (["plan", "--out", "pipe"], 3),
        (["show", "cutover.plan", "--diff", "pipe"], 1),
    ],
)
def test_a_pipe_is_refused_and_nobody_waits_for_its_other_end(tmp_path: Path, words: list[str], code: int) -> None:
    write_plan(PLAN, tmp_path / "cutover.plan")
    os.mkfifo(tmp_path / "pipe")
    where = clusters(tmp_path) if words[0] == "plan" else ()
    ran = run(*words, *where, folder=tmp_path, deadline_seconds=60).expect(code)
    assert "not a regular file" in ran.stderr and NOWHERE not in ran.stderr
    assert ran.stdout == "" and ran.stderr.count("\n") == 1


@pytest.mark.parametrize("words", ["--version", "show cutover.plan --format csv", "sign cutover.plan --by Ada"])
def test_output_that_nobody_gets_is_a_failure_in_one_paragraph(tmp_path: Path, words: str) -> None:
    write_plan(PLAN, tmp_path / "cutover.plan")
    # A test runner may have it on; without it Python writes at exit, when it is too late to say anything.
    into_full = ("env", "-u", "PYTHONUNBUFFERED", "sh", "-c", 'exec "$0" "$@" > /dev/full')
    said = run(*words.split(), folder=tmp_path, launcher=into_full).expect(1).stderr
    assert said.startswith("mm2-migrate: The output could not be written to stdout: No space left on device.")
    assert said.count("\n") == 1, said


def test_the_journal_of_another_user_is_named_and_whose_it_must_be(tmp_path: Path) -> None:
    write_plan(PLAN, tmp_path / "cutover.plan")
    journal = journal_path(tmp_path / "cutover.plan", PLAN.fingerprint)
    journal.touch(0o600)
    give_away(journal)
    approved = ("--approve", PLAN.fingerprint, "--execute")
    for words in (["apply", "cutover.plan", *clusters(tmp_path), *approved], ["report", "cutover.plan"]):
        said = run(*words, folder=tmp_path, launcher=without_root_powers()).expect(1).complaint()
        assert f"{journal.name} cannot be read: Permission denied." in said and "as the user who applied" in said


def test_a_second_run_or_an_undo_on_a_full_disk_is_not_begun_and_leaves_the_journal_whole(tmp_path):
    with small_disk(tmp_path, 64):
        scene = three_groups(tmp_path)
        assert scene.apply().exit_code == 0
        undone = scene.journal
        # To the last byte of its last page: the next line does not fit.
        filler = fill(tmp_path)
        with pytest.raises(MigrateError, match="No space left on device"):
            for _ in range(100):
                undone.open(APPLY, {"padding": "x" * 1000}).close()
        assert undone.path.read_bytes().endswith(b"\n") and not undone.read().torn
        undo, options = scene.undo(), RunOptions(execute=True, spends=undone)
        own = Journal(journal_path(tmp_path / "undo.plan", undo.fingerprint), undo.fingerprint, scene.clock.now_ms)

        def apply_undo() -> ApplyResult:
            return apply_plan(undo, ApplyClusters(scene.target), own, scene.clock, NoProgress(), options)

        before, whole = scene.target.writes, undone.path.read_bytes()
        with pytest.raises(MigrateError, match=r"No space left on device.*Nothing was changed"):
            apply_undo()
        assert scene.target.writes == before and not undone.read().is_spent and not own.path.exists()
        filler.unlink()
        assert apply_undo().exit_code == 0 and undone.read().is_spent
        assert undone.path.read_bytes().startswith(whole)
