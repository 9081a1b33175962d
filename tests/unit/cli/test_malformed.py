"""Files that are not as they were written: 15, and 150 with --long, made from a seed, in one process.

Each ends in one paragraph that says what is wrong; nothing hangs, and nothing is written.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

from migrate.apply.history import APPLY, SET
from migrate.apply.journal import Journal
from migrate.cli.main import cli
from migrate.model import Commit, Decision
from migrate.plan.companions import journal_path
from migrate.plan.file import read_plan, write_plan
from tests.seeds import new_seed
from tests.unit.plans import plan, row

# Of each of the three kinds.
INPUTS, ALL_INPUTS = 5, 50
NOBODY = "127.0.0.1:1"
MM2 = f"""# two clusters
clusters = A, B
A.bootstrap.servers = {NOBODY}
B.bootstrap.servers = {NOBODY}
A->B.enabled = true
A->B.topics = orders.*, bills\\u002d.*
replication.policy.separator = _
A->B.offset-syncs.topic.location = target
B.security.protocol = SASL_PLAINTEXT
B.sasl.mechanism = SCRAM-SHA-512
B.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="mover" password="pass;word";
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(ALL_INPUTS if metafunc.config.getoption("--long") else INPUTS))


@pytest.fixture(scope="module")
def seed() -> int:
    return new_seed()


def damaged(content: bytes, random: Random, spared: bytes = b"") -> bytes:
    """The same with a few bits flipped, cut short, or with a piece of it gone, doubled or replaced.

    `spared` stays where it stands in the content: a broker's address is not to become somebody else's.
    """
    kind = random.choice(("flip", "flip", "flips", "cut", "drop", "double", "junk"))
    at, size = random.randrange(len(content)), random.randrange(1, 40)
    if kind == "cut":
        made = content[:at]
    elif kind == "drop":
        made = content[:at] + content[at + size :]
    elif kind == "double":
        made = content[: at + size] + content[at:]
    elif kind == "junk":
        made = content[:at] + random.randbytes(size) + content[at + size :]
    else:
        flipped = bytearray(content)
        for _ in range(1 if kind == "flip" else 8):
            flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
        made = bytes(flipped)
    if made == content or made.count(spared) != content.count(spared):
        return damaged(content, random, spared)
    return made


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def complains(run: Callable[[], Result], folder: Path, story: str, codes: tuple[int, ...] = (1,)) -> Result:
    """Run a command that must end in one paragraph, and leave every file as it is."""
    before = snapshot(folder)
    result = run()
    assert result.exit_code in codes, f"{story}: exit {result.exit_code}\n{result.output}\n{result.exception!r}"
    told = [line for line in result.stderr.splitlines() if not line.startswith("[")]
    assert len(told) == 1 and told[0].startswith("mm2-migrate: "), f"{story}\n{result.stderr}"
    assert "Traceback" not in result.output and "Unexpected" not in result.stderr, f"{story}\n{result.stderr}"
    assert told[0].isprintable() and len(told[0]) < 2000, story
    assert snapshot(folder) == before, story
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plan that was applied, its journal, and properties that lead to nobody."""
    made = plan(
        row("a", target_prior=10), row("a", partition=1), row("b", topic="bills"),
        row("c", decision=Decision.BLOCK, reason="rewind"),
    )  # fmt: skip
    write_plan(made, tmp_path / "cutover.plan")
    journal = Journal(journal_path(tmp_path / "cutover.plan", made.fingerprint), made.fingerprint, lambda: 1)
    with journal.open(APPLY, {}) as writer:
        for group in ("a", "b"):
            rows = [r for r in made.rows if r.group == group]
            prior = {r.target_partition: Commit(r.target_prior) for r in rows if r.target_prior is not None}
            writer.backup({group: prior}, {group: [r.target_partition for r in rows]})
            writer.intend({group: {r.target_partition: r.target_offset for r in rows}})
            writer.outcome(group, {r.target_partition: SET for r in rows})
        writer.end(0, {})
    (tmp_path / "mm2.properties").write_text(MM2)
    for name in ("a", "b"):
        (tmp_path / f"{name}.properties").write_text(f"bootstrap.servers={NOBODY}\n")
    return tmp_path


def clusters(folder: Path) -> tuple[str, ...]:
    files = ("--source-config", str(folder / "a.properties"), "--target-config", str(folder / "b.properties"))
    return (*files, "--source", "A", "--target", "B", "--request-timeout", "1")


def command(*words: str) -> Callable[[], Result]:
    return lambda: CliRunner().invoke(cli, words)


def test_a_damaged_plan(folder: Path, seed: int, number: int) -> None:
    random = Random(f"plan {seed} {number}")
    story = f"plan, seed {seed}, number {number}"
    path = folder / "cutover.plan"
    whole = read_plan(path)
    path.write_bytes(damaged(path.read_bytes(), random))
    said = command("show", str(path), "--format", random.choice(("json", "csv", "table")))()
    if said.exit_code == 0:
        # What was hit says nothing, such as a word in the schema's documentation: then it is the same plan.
        assert read_plan(path) == whole, story
        return
    complains(lambda: said, folder, story, codes=(1, 3))
    assert (said.exit_code == 3) == ("was edited or damaged after it was made" in said.stderr), story
    verb = random.choice(("apply", "rollback", "verify"))
    approval = ("--approve", whole.fingerprint, "--execute") if verb != "verify" else ()
    refused = command(verb, str(path), *clusters(folder), *approval)
    complains(refused, folder, f"{verb}: {story}", codes=(said.exit_code,))


def test_a_damaged_journal(folder: Path, seed: int, number: int) -> None:
    random = Random(f"journal {seed} {number}")
    story = f"journal, seed {seed}, number {number}"
    path = folder / "cutover.plan"
    fingerprint = read_plan(path).fingerprint
    journal = journal_path(path, fingerprint)
    whole = journal.read_bytes()
    journal.write_bytes(damaged(whole, random))
    words = ("apply", "rollback")[number % 2], str(path), *clusters(folder), "--approve", fingerprint, "--execute"
    if whole.startswith(journal.read_bytes()):
        # Cut off: what a crash leaves. It is taken for what it says, which leads to a cluster that is not there.
        before = snapshot(folder)
        said = command(*words)()
        is_unwritten = words[0] == "rollback" and "NOTHING TO UNDO" in said.stdout
        assert said.exit_code == (4 if is_unwritten else 1) and NOBODY in said.output, f"{story}\n{said.output}"
        assert snapshot(folder) == before, story
        return
    said = complains(command(*words), folder, story)
    assert said.exit_code == 1 and " is damaged. " in said.stderr, f"{story}\n{said.stderr}"


def test_broken_properties(folder: Path, seed: int, number: int) -> None:
    random = Random(f"properties {seed} {number}")
    path = folder / "mm2.properties"
    path.write_bytes(damaged(path.read_bytes(), random, NOBODY.encode()))
    flow = ("--mm2-config", str(path), "--source", "A", "--target", "B", "--request-timeout", "1")
    story = f"properties, seed {seed}, number {number}"
    # Settings that cannot be read are wrong usage; others lead to a cluster that is not there.
    said = complains(command("verify", str(folder / "cutover.plan"), *flow), folder, story, codes=(1, 2))
    assert said.exit_code == 2 or NOBODY in said.stderr, f"{story}\n{said.stderr}"
    assert "pass;word" not in said.output
