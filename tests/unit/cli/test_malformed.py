"""Files that are not as they were written: 10, and 100 with --long, made from a seed, in one process.

Each ends in one paragraph that says what is wrong; nothing hangs, and nothing is written.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from click.testing import Result

from migrate.model import Decision
from migrate.plan.file import read_plan, write_plan
from tests.seeds import new_seed
from tests.unit import commands
from tests.unit.folders import held
from tests.unit.plans import plan, row

# Of each of the two kinds.
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
    at, size = random.randrange(len(content)), random.randrange(1, 40)
    before, after = content[:at], content[at + size :]
    flipped = bytearray(content)
    for _ in range(random.choice((1, 8))):
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    doubled, junk = content[: at + size] + content[at:], before + random.randbytes(size) + after
    made = random.choice((bytes(flipped), bytes(flipped), bytes(flipped), before, before + after, doubled, junk))
    if made == content or made.count(spared) != content.count(spared):
        return damaged(content, random, spared)
    return made


def complains(run: Callable[[], Result], folder: Path, story: str, codes: tuple[int, ...] = (1,)) -> Result:
    """Run a command that must end in one paragraph, and leave every file as it is."""
    before = held(folder)
    result = run()
    assert result.exit_code in codes, f"{story}: exit {result.exit_code}\n{result.output}\n{result.exception!r}"
    told = [line for line in result.stderr.splitlines() if not line.startswith("[")]
    assert len(told) == 1 and told[0].startswith("mm2-migrate: "), f"{story}\n{result.stderr}"
    assert "Traceback" not in result.output and "Unexpected" not in result.stderr, f"{story}\n{result.stderr}"
    assert told[0].isprintable() and len(told[0]) < 2000, story
    assert held(folder) == before, story
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plan, and properties that lead to nobody."""
    rows = row("a", target_prior=10), row("b", topic="bills"), row("c", decision=Decision.BLOCK, reason="rewind")
    write_plan(plan(*rows), tmp_path / "cutover.plan")
    (tmp_path / "mm2.properties").write_text(MM2)
    return tmp_path


def clusters(folder: Path) -> list[str]:
    return [*commands.clusters(folder), "--request-timeout", "1"]


def command(*words: str) -> Callable[[], Result]:
    return lambda: commands.run(*words)


def test_a_damaged_plan(folder: Path, seed: int, number: int) -> None:
    story = f"plan, seed {seed}, number {number}"
    random, path = Random(story), folder / "cutover.plan"
    whole = read_plan(path)
    path.write_bytes(damaged(path.read_bytes(), random))
    said = command("show", str(path), "--format", random.choice(("json", "csv", "table")))()
    if said.exit_code == 0:
        # What was hit says nothing, such as a word in the schema's documentation: then it is the same plan.
        assert read_plan(path) == whole, story
        return
    assert said.exit_code == (3 if "was edited or damaged after it was made" in said.stderr else 1), story
    verb = random.choice(("apply", "rollback", "verify"))
    approval = ("--approve", whole.fingerprint, "--execute") if verb != "verify" else ()
    for refused in (lambda: said, command(verb, str(path), *clusters(folder), *approval)):
        complains(refused, folder, f"{verb}: {story}", codes=(said.exit_code,))


def test_broken_properties(folder: Path, seed: int, number: int) -> None:
    story = f"properties, seed {seed}, number {number}"
    path = folder / "mm2.properties"
    path.write_bytes(damaged(path.read_bytes(), Random(story), NOBODY.encode()))
    flow = ("--mm2-config", str(path), "--source", "A", "--target", "B", "--request-timeout", "1")
    # Settings that cannot be read are wrong usage; others lead to a cluster that is not there.
    said = complains(command("verify", str(folder / "cutover.plan"), *flow), folder, story, codes=(1, 2))
    assert said.exit_code == 2 or NOBODY in said.stderr, f"{story}\n{said.stderr}"
    assert "pass;word" not in said.output
