"""The runbook, typed line by line on two real clusters: what is written there for the night works as it stands."""

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from migrate.plan.file import stored_fingerprint
from tests.integration.cli import REPOSITORY, Ran, run
from tests.integration.clusters import AnyLab, commit, commits_on, member, read_as_groups
from tests.integration.scene import Scene
from tests.notebooks import Tables, facts, outputs
from tests.notebooks import run as run_notebook

RUNBOOK = (REPOSITORY / "RUNBOOK.md").read_text()
STEP = re.compile(r"<!-- here: (?P<here>.*?) -->|^ *```bash\n(?P<block>.*?)^ *```", re.M | re.S)
EXIT = re.compile(r"\s+# exit (\d)\b.*$")
PLAIN = ("billing", "crm", "shipping")


@dataclass(frozen=True)
class Typed:
    """One command of the runbook: its words, the file that its output goes to, and the exit code it says."""

    words: tuple[str, ...]
    into: str
    exit_code: int


def steps() -> Iterator[str | Typed]:
    """Yield what the runbook has people do: what happens outside as text, commands as they are typed."""
    for found in STEP.finditer(RUNBOOK):
        if found["here"]:
            yield found["here"]
            continue
        for line in found["block"].replace("\\\n", " ").splitlines():
            said = EXIT.search(line)
            words = shlex.split(EXIT.sub("", line))
            words, into = (words[:-2], words[-1]) if ">" in words else (words, "")
            yield Typed(tuple(words), into, int(said[1]) if said else 0)


@dataclass
class Night:
    """The lab, what the runbook's names stand for on it, and everything that was run."""

    lab: AnyLab
    scene: Scene
    folder: Path
    consumers: ExitStack
    environment: dict[str, str] = field(default_factory=dict)
    ran: list[Ran] = field(default_factory=list)

    def happen(self, what: str) -> None:
        todo: dict[str, Callable[[], None]] = {
            "the waves are decided": self.decide_waves,
            "the consumers on A stop": self.consumers.close,
            "the consumers start on B": self.consume_on_b,
            "the consumers on B stop": self.consumers.close,
        }
        todo[what]()

    def decide_waves(self) -> None:
        waves = {"wave1.txt": PLAIN[:2], "wave2.txt": PLAIN[2:]}
        for name, groups in waves.items():
            (self.folder / name).write_text("".join(f"{self.scene.group(g)}\n" for g in groups))

    def consume_on_b(self) -> None:
        """Let the first wave read to the end on B and commit it, with members that stay until they are stopped."""
        target = self.lab.target_bootstrap
        groups = commits_on(target, [self.scene.group(name) for name in PLAIN[:2]])
        for group, read in read_as_groups(target, groups).items():
            for place, records in read.items():
                if records:
                    groups[group][place] = records[-1].offset + 1
        commit(target, groups)
        copy = self.scene.copy(self.scene.topic("orders"))
        for group in groups:
            self.consumers.enter_context(member(target, group, copy))

    def type(self, typed: Typed) -> None:
        if typed.words[0] == "export":
            self.environment |= dict(word.split("=", 1) for word in typed.words[1:])
            return
        program, *words = (self.named(word, typed) for word in typed.words)
        assert program == "mm2-migrate", typed
        if words[0] == "plan" and not {"--group", "--groups-file"} & set(words):
            words += ["--group", f".*-{self.scene.suffix}"]  # other tests have groups on these clusters, too
        if words[0] in ("plan", "status"):
            words += ["--settle", "1"]
        ran = run(*words, folder=self.folder, environment=self.environment)
        self.ran.append(ran)
        ran.expect(typed.exit_code)
        if typed.into:
            (self.folder / typed.into).write_text(ran.stdout)

    def named(self, word: str, typed: Typed) -> str:
        """Return what a word of the runbook stands for here."""
        if word == "FINGERPRINT":
            plan = next(w for w in typed.words if w.endswith(".plan"))
            return stored_fingerprint(self.folder / plan)
        return self.scene.group(word) if word in PLAIN else word

    def of(self, *words: str) -> Ran:
        """The first command that begins with these words."""
        return next(ran for ran in self.ran if ran.command.split()[1 : 1 + len(words)] == list(words))


@pytest.fixture(scope="module")
def night(lab: AnyLab, tmp_path_factory: pytest.TempPathFactory) -> Night:
    """The whole runbook, once."""
    folder = tmp_path_factory.mktemp("night")
    shutil.copy(lab.mm2_properties, folder / "mm2.properties")
    scene = Scene(lab, "night", seed=7)
    orders, clicks = scene.create("orders", 2), scene.create("clicks", 1)
    for place in ((orders, 0), (orders, 1), (clicks, 0)):
        scene.write([place], 500)
    scene.wait_replicated()
    scene.commit({scene.group("billing"): {(orders, 0): 120, (orders, 1): 340}})
    scene.commit({scene.group("crm"): {(orders, 0): 500, (orders, 1): 77}})
    scene.commit({scene.group("shipping"): {(clicks, 0): 410}})
    lab.mirror.wait_checkpoints([scene.group(name) for name in PLAIN])
    with ExitStack() as consumers:
        consumers.enter_context(member(lab.source_bootstrap, scene.group("billing"), orders))
        night = Night(lab, scene, folder, consumers)
        for step in steps():
            if isinstance(step, str):
                night.happen(step)
            else:
                night.type(step)
    return night


def test_every_command_of_the_runbook_does_what_it_says(night: Night) -> None:
    blocks = "".join(found["block"] or "" for found in STEP.finditer(RUNBOOK))
    assert len(night.ran) == RUNBOOK.count("mm2-migrate ") - 1 == blocks.count("mm2-migrate "), "the first is prose"


def test_the_rehearsal_names_who_still_runs_and_the_night_tells_what_is_different(night: Night) -> None:
    assert night.scene.group("billing") in night.of("plan", "--out").stdout.partition("NEEDS ATTENTION")[2]
    shown = night.of("show", "wave1.plan", "--diff").stdout
    assert "NO LONGER THERE" in shown and "source-group-stopped" in shown


def test_a_dry_run_without_signatures_says_so_first_and_shows_everything_else(night: Night) -> None:
    shown = night.of("apply", "wave1.plan").stdout
    assert shown.startswith("REFUSED: Plan ") and "asks for 2 signatures of different names, and has 0 of 2" in shown
    assert "DRY RUN: 4 offsets of 2 groups would be set" in shown and night.scene.group("crm") in shown


def test_the_second_signature_is_the_one_that_was_needed_and_both_stand_in_the_journal(night: Night) -> None:
    first, second = [ran for ran in night.ran if ran.command.startswith("mm2-migrate sign wave1.plan")]
    assert "1 of 2 (Ada Byron)" in first.stdout
    assert "2 of 2 (Ada Byron, Grace Hopper)" in second.stdout
    (journal,) = night.folder.glob("wave1.plan.*.journal.jsonl")
    begin = json.loads(journal.read_text().splitlines()[0])
    assert [s["name"] for s in begin["signatures"]] == ["Ada Byron", "Grace Hopper"]


def test_the_waves_add_up(night: Night) -> None:
    assert "3 groups: 3 moved" in night.of("show", "wave1.plan", "wave2.plan").stdout


def test_in_the_end_nothing_is_left_on_b_and_billing_stands_on_a_where_it_had_come_to(night: Night) -> None:
    scene = night.scene
    assert commits_on(night.lab.target_bootstrap, [scene.group(name) for name in PLAIN]) == {}
    orders = scene.topic("orders")
    on_a = commits_on(night.lab.source_bootstrap, [scene.group("billing")])
    assert on_a[scene.group("billing")] == {(orders, 0): 500, (orders, 1): 500}


@pytest.mark.filterwarnings("ignore")
def test_both_notebooks_run_on_the_files_of_the_night_and_tell_its_numbers(night: Night) -> None:
    shown = run("show", "wave1.plan", "--format", "json", folder=night.folder).expect(0)
    document = json.loads(shown.stdout)
    reviewed = run_notebook("review_plan.ipynb", night.folder, PLAN="wave1.plan", OTHER="rehearsal.plan")
    told = facts(reviewed)
    assert (told["Fingerprint"], told["Verdict"]) == (document["fingerprint"], document["verdict"])
    assert f"= {len(document['rows'])} rows" in told["Commits"] and len(document["rows"]) == 4
    assert told["Signatures"] == "2 of 2 (Ada Byron, Grace Hopper)"
    assert len(outputs(reviewed, "image/png")) == 4
    after = run_notebook("after_cutover.ipynb", night.folder, PLAN="wave1.plan", VERIFICATION="verification.json")
    standings = {r[0]: r[1] for r in Tables(outputs(after, "text/html")[1]).rows[1:]}
    assert standings["undone"] == "2" and standings["moved"] == "0"
