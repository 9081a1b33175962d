"""A folder that takes no file: one paragraph, the right exit code, and nothing left behind."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from migrate.apply.assess import ApplyClusters, RunOptions
from migrate.apply.engine import ApplyResult, apply_plan
from migrate.apply.history import APPLY
from migrate.apply.journal import Journal, journal_path
from migrate.apply.outcome import RowStatus
from migrate.apply.signatures import read_signatures, signatures_path
from migrate.apply.write import WINDOWS_PER_CHUNK
from migrate.cli.sign import run_sign
from migrate.errors import MigrateError
from migrate.plan.file import refuse_overwrite, write_plan
from tests.builders import make_plan, make_row
from tests.fakes import NoProgress
from tests.integration.cli import REPOSITORY, Ran, run
from tests.unit.applyscene import Scene, statuses, three_groups
from tests.unit.folders import fill, give_away, held, small_disk, without_root_powers
from tests.unit.plans import plan, row

READ_ONLY, CLOSED, FULL, GONE = "read-only", "another's, closed", "on a full disk", "gone"
WHY = {
    READ_ONLY: "Permission denied",
    CLOSED: "Permission denied",
    FULL: "No space left on device",
    GONE: "there is no folder",
}
PLAN = make_plan([make_row(group="billing"), make_row(group="refunds")])
# Nobody is there: a command that asks them would say so.
NOWHERE = "127.0.0.1:1"


@dataclass
class Ground:
    """A folder that can be written, with a plan, and one that cannot."""

    folder: Path
    bad: Path
    world: str
    under: tuple[str, ...] = ()
    before: dict[str, bytes] = field(default_factory=dict)

    def run(self, *words: str, inside: Path | None = None) -> Ran:
        return run(*words, folder=inside or self.folder, launcher=self.under)

    def clusters(self) -> tuple[str, ...]:
        client = self.folder / "client.properties"
        client.write_text(f"bootstrap.servers={NOWHERE}\n")
        return ("--source-config", str(client), "--target-config", str(client), "--source", "A", "--target", "B")

    def unchanged(self) -> bool:
        return self.world == GONE or held(self.bad) == self.before


@pytest.fixture(params=WHY)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    world = request.param
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    write_plan(PLAN, good / "cutover.plan")
    bad.mkdir()
    with ExitStack() as stack:
        if world == FULL:
            stack.enter_context(small_disk(bad, 8))
        if world == GONE:
            bad.rmdir()
        else:
            write_plan(PLAN, bad / "cutover.plan")
        under = () if world in (FULL, GONE) else without_root_powers()
        made = Ground(good, bad, world, under)
        if world == FULL:
            fill(bad)
        elif world == READ_ONLY:
            bad.chmod(0o555)
        elif world == CLOSED:
            give_away(bad)
            bad.chmod(0o700)
        if world != GONE:
            made.before = held(bad)
        yield made
        if world == READ_ONLY:
            bad.chmod(0o755)


@pytest.mark.parametrize("command", ["plan", "rollback", "report"])
def test_what_cannot_be_written_is_said_before_anybody_is_asked_and_nothing_is_left(
    ground: Ground, command: str
) -> None:
    out, clusters = ground.bad / "new", ground.clusters() if command != "report" else ()
    if command == "rollback":
        scene = three_groups(ground.folder)
        write_plan(scene.plan, ground.folder / "cutover.plan")
        assert scene.apply().exit_code == 0
        path = journal_path(ground.folder / "cutover.plan", scene.plan.fingerprint)
        scene.journal.path.rename(path)
    before = held(ground.folder)
    ran = ground.run(command, *["cutover.plan"] * (command != "plan"), *clusters, "--out", str(out))
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


def test_what_only_reads_works_where_nothing_can_be_written(ground: Ground) -> None:
    path = ground.folder / "cutover.plan" if ground.world in (CLOSED, GONE) else ground.bad / "cutover.plan"
    for words in (["show", str(path)], ["show", str(path), "--format", "json"], ["explain", str(path), "billing"]):
        assert "billing" in ground.run(*words).expect(0).stdout
    assert ground.unchanged()


def gone_folder(folder: Path) -> tuple[str, ...]:
    """The words that run a command in a folder that is deleted under it."""
    (folder / "deleted").mkdir()
    return ("sh", "-c", f'cd "{folder}/deleted" && rmdir "{folder}/deleted" && exec "$0" "$@"')


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan", "--request-timeout", "1"], "The plan cannot be written to cutover.plan: the working folder is gone"),
        (["report", "{plan}"], "The report cannot be written to report.html: the working folder is gone"),
    ],
)
def test_in_a_working_folder_that_is_gone_what_goes_there_is_refused(
    tmp_path: Path, words: list[str], said: str
) -> None:
    write_plan(PLAN, tmp_path / "c.plan")
    made = Ground(tmp_path, tmp_path, GONE)
    clusters = made.clusters() if words[0] == "plan" else ()
    ran = run(
        words[0], *clusters, *(w.format(plan=tmp_path / "c.plan") for w in words[1:]), folder=tmp_path,
        launcher=gone_folder(tmp_path),
    )  # fmt: skip
    assert said in ran.expect(2).complaint() and NOWHERE not in ran.stderr


def test_a_missing_working_folder_is_never_called_a_fault_of_ours(tmp_path: Path) -> None:
    code = "from pathlib import Path; from migrate.cli.console import one_paragraph; one_paragraph(Path.cwd)()"
    words = [*gone_folder(tmp_path), sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("mm2-migrate: The working folder is gone. Change to one that exists")


# ---- where a file is asked for and a pipe is named


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
    clusters = Ground(tmp_path, tmp_path, GONE).clusters() if words[0] == "plan" else ()
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "migrate", *words, *clusters]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == code and "not a regular file" in done.stderr, done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1 and NOWHERE not in done.stderr


# ---- where the output goes to a file on a full disk


@pytest.mark.parametrize(
    "words", ["--version", "plan --help", "show cutover.plan --format csv", "sign cutover.plan --by Ada"]
)
def test_output_that_nobody_gets_is_a_failure_in_one_paragraph(tmp_path: Path, words: str) -> None:
    write_plan(PLAN, tmp_path / "cutover.plan")
    # A test runner may have it on; without it Python writes at exit, when it is too late to say anything.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"} | {"PYTHONPATH": str(REPOSITORY)}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "migrate", *words.split()], cwd=tmp_path, env=environment, stdout=full,
            stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("mm2-migrate: The output could not be written to stdout: No space left on device.")
    assert done.stderr.count("\n") == 1, done.stderr


# ---- the journal on a disk that is full, or becomes full


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        (0, r"cutover\.plan\..*journal.*Nothing was changed.*Make room"),
        (1, "journal could not be written.*Nothing was written"),
    ],
    ids=["no room for a journal", "none for the prior offsets"],
)
def test_on_a_full_disk_nothing_is_written_to_the_cluster_and_later_it_is_no_obstacle(
    tmp_path: Path, pages: int, said: str
) -> None:
    with small_disk(tmp_path, 64):
        scene = Scene(plan(*(row(f"g{n:03}", offset=70, target_prior=10) for n in range(100))), tmp_path)
        write_plan(scene.plan, tmp_path / "cutover.plan")
        filler = fill(tmp_path, pages)
        before = held(tmp_path)
        with pytest.raises(MigrateError, match=f"(?s){said}") as raised:
            scene.apply()
        assert raised.value.exit_code == 1 and "No space left on device" in str(raised.value)
        assert scene.target.writes == 0 and (pages or held(tmp_path) == before)
        filler.unlink()
        if not pages:  # no journal was begun: a new plan may take this one's place
            refuse_overwrite(tmp_path / "cutover.plan")
        assert scene.apply().exit_code == 0 and scene.rollback().exit_code == 0
        assert {scene.target.held(f"g{n:03}")["A.orders", 0] for n in range(100)} == {10}


def test_a_second_run_that_finds_the_disk_full_leaves_the_journal_as_the_first_left_it(tmp_path: Path) -> None:
    with small_disk(tmp_path, 64):
        scene = three_groups(tmp_path)
        assert scene.apply().exit_code == 0
        # To the last byte of its last page: the next line does not fit.
        filler = fill(tmp_path)
        with pytest.raises(MigrateError, match="No space left on device"):
            for _ in range(100):
                scene.journal.open(APPLY, {"padding": "x" * 1000}).close()
        whole = scene.journal.path.read_bytes()
        assert whole.endswith(b"\n") and not scene.journal.read().torn
        filler.unlink()
        assert scene.rollback().exit_code == 0 and scene.journal.path.read_bytes().startswith(whole)


def test_a_disk_that_becomes_full_amid_apply_ends_it_with_what_was_set_and_what_the_journal_lacks(
    tmp_path: Path,
) -> None:
    groups = 20 * WINDOWS_PER_CHUNK
    with small_disk(tmp_path, 256):
        scene = Scene(plan(*(row(f"g{n:03}", offset=70, target_prior=10) for n in range(groups))), tmp_path)
        fillers = []

        def fill_the_disk(call: str) -> None:
            if call == "alter" and not fillers:
                fillers.append(fill(tmp_path, pages_left=1))

        scene.target.on_call = fill_the_disk
        result = scene.apply(concurrency=1)
        told = statuses(result)
        assert result.exit_code == 4 and "No space left on device" in result.trouble
        assert "what the cluster answered from then on" in result.journal_gap
        now = {key: scene.target.held(key[0])["A.orders", 0] == 70 for key in told}
        assert 0 < sum(now.values()) < groups, "it ended amid them"
        assert {key: status is RowStatus.SET for key, status in told.items()} == now
        assert set(told.values()) == {RowStatus.SET, RowStatus.PLANNED}
        fillers[0].unlink()
        assert scene.apply().exit_code == 0
        assert scene.rollback().exit_code == 0
        assert {scene.target.held(key[0])["A.orders", 0] for key in told} == {10}


def test_a_journal_in_a_folder_of_a_read_only_file_system_is_refused_before_the_first_write(tmp_path: Path) -> None:
    with small_disk(tmp_path, 16):
        scene = three_groups(tmp_path)
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        with pytest.raises(MigrateError, match=r"cannot be written: Read-only file system\. Nothing was changed"):
            scene.apply()
        assert scene.target.writes == 0 and held(tmp_path) == {}


def test_the_journal_of_another_user_is_named_and_whose_it_must_be(tmp_path: Path) -> None:
    write_plan(PLAN, tmp_path / "cutover.plan")
    journal = journal_path(tmp_path / "cutover.plan", PLAN.fingerprint)
    journal.touch(0o600)
    give_away(journal)
    made = Ground(tmp_path, tmp_path, CLOSED, without_root_powers())
    approved = ("--approve", PLAN.fingerprint, "--execute")
    for words in (["apply", "cutover.plan", *made.clusters(), *approved], ["report", "cutover.plan"]):
        said = made.run(*words).expect(1).complaint()
        assert f"{journal.name} cannot be read: Permission denied." in said and "as the user who applied" in said


def test_an_undo_whose_first_plan_can_not_be_marked_as_spent_is_not_begun(tmp_path: Path) -> None:
    with small_disk(tmp_path, 64):
        scene = three_groups(tmp_path)
        assert scene.apply().exit_code == 0
        undone = scene.journal
        undo, options = scene.undo(), RunOptions(execute=True, spends=undone)
        own = Journal(journal_path(tmp_path / "undo.plan", undo.fingerprint), undo.fingerprint, scene.clock.now_ms)

        def apply_undo() -> ApplyResult:
            return apply_plan(undo, ApplyClusters(scene.target), own, scene.clock, NoProgress(), options)

        before, filler = scene.target.writes, fill(tmp_path)
        with pytest.raises(MigrateError, match=r"No space left on device.*Nothing was changed"):
            apply_undo()
        assert scene.target.writes == before and not undone.read().is_spent and not own.path.exists()
        filler.unlink()
        assert apply_undo().exit_code == 0 and undone.read().is_spent
