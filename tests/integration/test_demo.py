"""The demo: what a newcomer runs first must work, and must say plainly what is missing."""

import os
import re
import signal
import subprocess
from itertools import takewhile
from pathlib import Path

import pytest

from scripts.demonstration.counting import Copy, Tally, Written, best, tally
from tests.integration.cli import CommandLine
from tests.lab.waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
DEMO = REPOSITORY / "scripts" / "demo"
DEADLINE_SECONDS = 600.0


def start_demo(*options: str, folder: Path = REPOSITORY, **environment: str) -> subprocess.Popen[str]:
    """Start the demo in a session of its own."""
    return subprocess.Popen(
        [str(DEMO), *options], env=os.environ | environment, cwd=folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """What has become of a demo; when the deadline passes, it is stopped with all that it started."""
    try:
        stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def test_the_demo_moves_every_group_and_loses_no_record(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    ran = ended(start_demo("--keep", "kept", folder=tmp_path))
    said = f"{ran.stdout}\n{ran.stderr}"
    assert ran.returncode == 0, said
    assert "Traceback" not in said, said
    assert (tmp_path / "kept/report.html").exists()
    for command in ("doctor", "status", "plan", "show", "apply", "verify", "rollback", "report"):
        assert f"\n$ mm2-migrate {command} " in ran.stdout, said
    closing = re.search(
        r"^lost 0 of ([\d,]+) owed records; ([\d,]+) read twice \(MM2's checkpoints: ([\d,]+)\)$", ran.stdout, re.M
    )
    assert closing is not None, said
    owed, twice, by_checkpoints = (int(number.replace(",", "")) for number in closing.groups())
    assert owed > 10_000
    assert twice < by_checkpoints, said
    if pytestconfig.getoption("--long"):
        # Which checks warn, and so what stands between the lines, depends on how fast MM2 was.
        assert not untrue(transcript(), ran.stdout), said


def test_the_demo_without_java_says_so_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = tmp_path / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    ran = ended(start_demo(PATH=str(tmp_path)))
    assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (1, "", 1), ran
    assert ran.stderr.startswith("Java is missing: install a JDK"), ran.stderr


def end_with(number: int, process: subprocess.Popen[str], folder: Path) -> str:
    """Send a signal, and assert that no process and no file is left of what has a folder for its temporary files."""
    os.kill(process.pid, number)
    _, stderr = process.communicate(timeout=60)
    wait_until(lambda: not started_in(folder), 30, f"the end of what was started in {folder}")
    assert list(folder.iterdir()) == []
    return stderr


def test_a_demo_that_is_terminated_while_it_starts_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    process = start_demo(TMPDIR=str(tmp_path))
    try:
        wait_until(lambda: started_in(tmp_path), 300, "the first broker")
    finally:
        stderr = end_with(signal.SIGTERM, process, tmp_path)
    assert process.returncode == 128 + signal.SIGTERM, stderr
    assert "Traceback" not in stderr


@pytest.mark.long
def test_the_scene_alone_can_be_planned_by_hand_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    work, folders = tmp_path / "work", tmp_path / "folders"
    folders.mkdir()
    process = start_demo("--hands-on", str(work), TMPDIR=str(folders))
    try:
        assert process.stdout is not None
        told = list(takewhile(lambda line: not line.startswith("Ctrl-C"), process.stdout))
        (processes,) = (line for line in told if line.startswith("Processes: "))
        ids = [int(word) for word in re.findall(r"\d+", processes.replace("MM2", ""))]
        assert len(ids) == 3 and all(Path(f"/proc/{pid}").exists() for pid in ids), told
        commands = CommandLine(work, ("--mm2-config", "mm2.properties", "--source", "A", "--target", "B"))
        commands.plan("wave1.plan", "--groups-file", "wave1.txt").expect(0)
        commands.plan("read.plan", "--groups-file", "wave1.txt", "--commits-from", "consumer-offsets").expect(0)
        assert commands.document("read.plan")["rows"] == commands.document("wave1.plan")["rows"]
        commands.execute("wave1.plan").expect(0)
        commands.verify("wave1.plan").expect(0)
    finally:
        stderr = end_with(signal.SIGINT, process, folders)
    assert (process.returncode, stderr) == (0, "")


def started_in(folder: Path) -> list[str]:
    """The processes that have a path below `folder` on their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if f"{folder}/" in command:
            found.append(command.replace("\0", " "))
    return found


# What these say depends on where MM2 was when it was killed.
LABEL_ONLY = ("Grades", "Records", "Re-reads", "MM2 itself")


def transcript() -> str:
    """The run that the README shows."""
    told: str = (REPOSITORY / "README.md").read_text().split("## A real run")[1].split("```")[1]
    return told


def words(text: str) -> list[str]:
    """The words of an output, with numbers, fingerprints and cluster ids made alike, however its lines were broken."""
    kept = []
    for line in re.sub(r"\n {13}", " ", text.replace("\\\n", " ")).splitlines():
        label = next((label for label in LABEL_ONLY if line.startswith(label)), None)
        kept.append(label or line)
    plain = re.sub(r"\b[0-9a-f]{12,64}\b", "HEX", "\n".join(kept))
    plain = re.sub(r"(cluster id) \S+", r"\1 ID", plain)
    return re.sub(r"\d[\d,.:]*\d|\d", "N", plain).split()


def untrue(told: str, said: str) -> list[str]:
    """The parts of a transcript, between its dots, that do not stand in an output in this order."""
    heard, at, wrong = words(said), 0, []
    for part in re.split(r"^\.\.\.$", told, flags=re.M):
        wanted = words(part)
        found = [i for i in range(at, len(heard)) if heard[i : i + len(wanted)] == wanted]
        if found:
            at = found[0] + len(wanted)
        else:
            wrong.append(part.strip())
    return wrong


def test_a_transcript_is_true_only_if_all_its_parts_stand_in_the_output_in_their_order() -> None:
    said = "$ run\nVERIFIED: 15 offsets\nGrades       1 exact\nPlan 6b6384cccaa0 on B:\n             3 equal\nlost 0"
    assert untrue("$ run\nVERIFIED: 7 offsets\n...\nPlan 000000000000 on B: 12,000 equal\n", said) == []
    assert untrue("Grades       3 bounded\nPlan 6b6384cccaa0 on B: 3 equal", said) == []
    assert untrue("lost 0\n...\n$ run", said) == ["$ run"]
    assert untrue("VERIFIED: 15 groups", said) == ["VERIFIED: 15 groups"]


WRITTEN = tuple(Written(offset, f"id{offset}", f"k{offset % 2}", committed=offset != 3) for offset in range(6))


def test_the_demos_tally_counts_owed_lost_and_read_twice_and_knows_the_best_start() -> None:
    # Nothing is owed of what was aborted; of a compacted topic only the newest of each key.
    assert tally(WRITTEN, 2, False, ["id2", "id5"]) == Tally(owed=3, read=2, lost=1, rereads=0)
    assert tally(WRITTEN, 2, False, ["id1", "id2", "id4", "id2", "id5"]).rereads == 2
    assert tally(WRITTEN, 0, False, []).owed == 5
    assert tally(WRITTEN, 0, True, ["id4", "id5"]) == Tally(owed=2, read=2, lost=0, rereads=0)
    copies = [Copy(offset, f"id{name}") for offset, name in enumerate((0, 1, 2, 1, 2, 4, 5))]
    assert best(WRITTEN, 2, False, copies) == 4
    assert best(WRITTEN, 6, False, copies) == 7
