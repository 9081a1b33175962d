"""What the README promises of apply, rollback, undo plans and verify, in whatever order they come and whatever breaks.

Hypothesis types commands, breaks them, and lets colleagues and consumers commit in between; the laws of `lifelaws` are
held against the truth that `planlife.Life` keeps. A failing run is printed step by step, in the least steps that fail.
"""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from migrate.apply.outcome import RowStatus
from migrate.model import Commit, Decision, Method, TopicPartition
from migrate.plan.plan import Plan
from tests.fakes import ALIVE, EMPTY
from tests.unit import plans
from tests.unit.lifefakes import ANSWERS, CALM, Kind, Trouble
from tests.unit.lifelaws import ALWAYS, OF_A_COMMAND
from tests.unit.planlife import COPY, FOLDERS, HERE, Life, Ran, Saved

GROUPS = "abcd"
# Metadata is written, read back and restored byte for byte.
OLD, NEW = "old\x00é", "AgAAAZ\x00\x00" + "名" * 4088
ROWS: dict[str, dict[str, Any]] = {
    "new": {},
    "moved": {"target_prior": 10},
    "moved, metadata before": {"target_prior": 10, "target_prior_metadata": OLD},
    "moved, metadata planned": {"target_prior": 10, "target_metadata": NEW, "source_metadata": NEW},
    "there already": {"target_prior": 60},
    "there with other metadata": {"target_prior": 60, "target_prior_metadata": OLD},
    "rewound": {"target_prior": 80},
    "kept": {"target_prior": 60, "decision": Decision.KEEP, "reason": "already-there"},
    "kept with metadata": {
        "target_prior": 70, "target_prior_metadata": OLD, "decision": Decision.KEEP, "reason": "ahead-kept",
    },
    "skipped": {"decision": Decision.SKIP, "offset": None, "method": Method.EXPLICIT},
}  # fmt: skip
BLOCKED = {"decision": Decision.BLOCK, "reason": "rewind", "target_prior": 80}
OFTEN = ["new", "moved", "moved, metadata before"]
# What the groups of a plan, by their number, are called on the target.
NAMING: dict[str, Callable[[int, int], str]] = {
    "as on the source": lambda number, count: "",
    "otherwise": lambda number, count: f"{GROUPS[number]}-eu",
    "as the next one on the source": lambda number, count: GROUPS[(number + 1) % count] if count > 1 else "b",
}
OPTIONS = {"execute": True, "allow_partial": False, "concurrency": 1, "group_timeout": 1.0}

kinds = st.sampled_from([*OFTEN, *ROWS, *OFTEN])
groups_drawn = st.lists(st.lists(kinds, min_size=1, max_size=4), min_size=1, max_size=4)
one_in_eight = st.sampled_from([False] * 7 + [True])
folders = st.sampled_from([HERE, HERE, HERE, COPY])
which = st.integers(0, 3)
answers = st.lists(st.tuples(st.sampled_from([0, 0, 1, 2]), st.sampled_from(list(ANSWERS))), max_size=4).map(tuple)
befallen = st.sampled_from([*Kind, Kind.MEDDLED_BETWEEN, Kind.NONE, Kind.NONE, Kind.NONE])
troubles = st.just(CALM) | st.builds(Trouble, kind=befallen, at=st.integers(0, 13), group=which, answers=answers)
options = st.builds(
    dict,
    execute=one_in_eight.map(lambda dry: not dry),
    allow_partial=st.booleans(),
    concurrency=st.integers(1, 3),
    group_timeout=st.sampled_from([0.0, 1.0, 1.0]),
)
moves = st.sampled_from(["refuse", "refuse", "restore"])


def made(groups: list[list[str]], blocked: bool, naming: str) -> Plan:
    rows = [
        plans.row(
            GROUPS[number], partition=partition, source_log_start=None, source_log_end=None,
            target_group=NAMING[naming](number, len(groups)),
            **(BLOCKED if blocked and number == partition == 0 else ROWS[kind]),
        )
        for number, kinds in enumerate(groups)
        for partition, kind in enumerate(kinds)
    ]  # fmt: skip
    return plans.plan(*rows, source_down=True, source_cluster_id="")


@cache
def folder() -> Path:
    """Where all runs put their files: to make a folder for each, and remove it, takes longer than the run."""
    path = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, path)
    return Path(path)


class LifeOfAPlan(RuleBasedStateMachine):
    """The rules are what people and clusters do; after each of them the laws must hold."""

    life: Life
    ran: Ran

    @initialize(
        groups=groups_drawn, blocked=one_in_eight, trouble=st.none() | troubles, naming=st.sampled_from(list(NAMING))
    )
    def a_plan(self, groups: list[list[str]], blocked: bool, trouble: Trouble | None, naming: str):
        """Make a plan, and perhaps run into trouble with it at once."""
        self.life = Life(folder(), made(groups, blocked, naming))
        if trouble is not None:
            self.apply(HERE, trouble, {"execute": True, "allow_partial": True})

    def begun(self) -> list[str]:
        return [folder for folder in FOLDERS if self.life.journals[folder].exists()]

    def saved(self) -> list[Saved]:
        return self.life.saved

    # --- what people type -----------------------------------------------------------------------------------

    @rule(folder=folders, trouble=troubles, options=options)
    def apply(self, folder: str, trouble: Trouble, options: dict[str, Any]):
        self.holds(self.life.run("apply", folder, trouble, **options))

    @precondition(begun)
    @rule(folder=folders, trouble=troubles, options=options, moved=moves)
    def roll_back(self, folder: str, trouble: Trouble, options: dict[str, Any], moved: str = "refuse"):
        self.holds(self.life.run("rollback", self.one_begun(folder), trouble, moved=moved, **options))

    @precondition(begun)
    @rule(folder=folders, which=which, trouble=troubles, options=options, moved=moves)
    def roll_back_one_group(self, folder: str, which: int, trouble: Trouble, options: dict[str, Any], moved: str):
        alone = (self.life.group(which),)
        self.holds(self.life.run("rollback", self.one_begun(folder), trouble, moved=moved, groups=alone, **options))

    @precondition(begun)
    @rule(folder=folders, moved=moves)
    def save_an_undo(self, folder: str, moved: str):
        self.holds(self.life.save_undo(self.one_begun(folder), moved))

    @precondition(saved)
    @rule(which=which, trouble=troubles, options=options)
    def apply_an_undo(self, which: int, trouble: Trouble, options: dict[str, Any]):
        undo = self.life.saved[-1 - which % len(self.life.saved)]
        self.holds(self.life.run("apply undo", undo.folder, trouble, undo, moved=undo.moved, **options))

    @rule(folder=folders, which=which)
    def verify(self, folder: str, which: int = 0):
        """Verify the plan, or one of the last undos of it."""
        undo = ([None, *self.life.saved[-3:]] * 4)[which]
        self.holds(self.life.run("verify", undo.folder if undo else folder, undo=undo))

    def one_begun(self, folder: str) -> str:
        return folder if folder in self.begun() else self.begun()[0]

    # --- what others do -------------------------------------------------------------------------------------

    @rule(
        which=which, partition=st.integers(0, 4), offset=st.sampled_from([10, 60, 66, 5]),
        metadata=st.sampled_from(["", "", "theirs"]), looked=st.sampled_from([False, False, True]),
    )  # fmt: skip
    def somebody_commits(self, which: int, partition: int, offset: int, metadata: str, looked: bool):
        self.life.meddle(self.life.group(which), {TopicPartition("A.orders", partition): Commit(offset, metadata)})
        if looked:
            self.verify(HERE)

    @rule(which=which, what=st.sampled_from(["stop", "stop", "start", "delete"]))
    def groups_change(self, which: int, what: str):
        """All consumers stop, those of a group start, or somebody deletes a group."""
        group, target = self.life.group(which), self.life.target
        if what == "start":
            target.states[group] = ALIVE
        elif what == "stop":
            target.states |= dict.fromkeys(target.states, EMPTY)
        elif not self.life.is_alive(group):
            self.life.meddle(group, dict.fromkeys(target.offsets.get(group, {})))
            target.states.pop(group, None)

    @precondition(lambda self: any(self.life.target.unseen.values()))
    @rule(which=which)
    def an_append_becomes_visible(self, which: int):
        waiting = [group for group, late in self.life.target.unseen.items() if late]
        self.life.surface(waiting[which % len(waiting)])
        self.goes_on_holding()

    def holds(self, ran: Ran):
        self.ran = ran
        for law in OF_A_COMMAND:
            law(self.life, ran)
        self.goes_on_holding()

    def goes_on_holding(self):
        for law in ALWAYS:
            law(self.life)


TestLifeOfAPlan = LifeOfAPlan.TestCase
LONG = settings.get_current_profile_name() == "long-run"
TestLifeOfAPlan.settings = settings(
    max_examples=1000 if LONG else 200, stateful_step_count=40 if LONG else 25, report_multiple_bugs=False
)


def life_of(*kinds: str) -> LifeOfAPlan:
    machine = LifeOfAPlan()
    machine.a_plan([list(kinds)], blocked=False, trouble=None, naming="as on the source")
    return machine


# --- runs that the machine has found wrong once --------------------------------------------------------------


def test_what_somebody_commits_after_the_rows_were_judged_makes_no_lie_of_what_was_said():
    """A rollback looks at other rows last, and reads the judged ones along with them."""
    machine = life_of("new", "moved", "there already")
    options = OPTIONS | {"group_timeout": 0.0}
    machine.apply(HERE, CALM, options)
    machine.roll_back(HERE, Trouble(Kind.KILLED_BEFORE_CALL, at=7), options)
    machine.roll_back(HERE, Trouble(Kind.MEDDLED, at=7), options)
    ran = machine.ran
    judged, last = (ran.seen("a", until) for until in (ran.judged, (ran.judged or 0) + 1))
    assert judged != last, "nobody committed after the rows were judged"


def test_what_a_rollback_may_still_restore_is_unknown_and_not_failed_to_an_undo_that_fails():
    """An undo plan has a journal of its own, which knows nothing of the rollback's tries."""
    machine = life_of("moved", "kept", "new")
    machine.apply(HERE, CALM, OPTIONS)
    machine.roll_back(HERE, Trouble(answers=((0, "lost, applied later, then denied"),)), OPTIONS)
    assert machine.life.target.unseen["a"], "nothing can become visible any more"
    machine.save_an_undo(HERE, "refuse")
    machine.apply_an_undo(0, Trouble(Kind.UNREADABLE, at=3), OPTIONS)
    ran = machine.ran
    assert ran.result and {row.status for row in ran.result.rows} == {RowStatus.UNKNOWN}, ran.said


# --- one trouble, wherever it can come --------------------------------------------------------------------------

NEVER_SEEN = Trouble(answers=((0, "lost, applied later, then denied"),))
ANSWERED = [(), *((answer,) for answer in ANSWERS), ("loading", "loading"), ("lost", "lost")]
TROUBLES = {
    **{str(kind): [Trouble(kind, at) for at in range(14)]
       for kind in (Kind.KILLED_BEFORE_CALL, Kind.MEDDLED, Kind.UNREADABLE)},
    **{", ".join(given): [Trouble(answers=tuple((0, answer) for answer in given))] for given in ANSWERED},
}  # fmt: skip


@pytest.mark.parametrize("rows", [["new"], ["new", "new"], ["moved", "new"], ["there with other metadata", "moved"]])
@pytest.mark.parametrize("troubles", TROUBLES.values(), ids=TROUBLES)
@pytest.mark.parametrize("where", ["apply", "rollback", "rollback of what is not seen"])
def test_after_a_trouble_a_rollback_finishes_and_what_nobody_saw_does_not_come_back(rows, troubles, where):
    """Coordinators up to Kafka 3.9 write no tombstone for what they do not hold, and load it when they move."""
    for trouble in troubles:
        machine = life_of(*rows)
        machine.apply(HERE, {"apply": trouble, "rollback": CALM}.get(where, NEVER_SEEN), OPTIONS)
        if not machine.begun():
            continue
        machine.roll_back(HERE, CALM if where == "apply" else trouble, OPTIONS)
        machine.roll_back(HERE, CALM, OPTIONS)
        while any(machine.life.target.unseen.values()):
            machine.an_append_becomes_visible(0)
        assert trouble.is_meddled or machine.ran.code == 0, machine.ran.said
