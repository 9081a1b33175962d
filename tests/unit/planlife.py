"""A plan in two folders, the commands on it, all that can go wrong under them, and the truth that they are held to.

The commands are those of the command line, from reading the plan file on. Behind the ports stand a cluster in memory
that notes what is asked of it, and a disk that knows what would survive a power cut.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from migrate.apply.drift import to_write
from migrate.apply.engine import ApplyResult, apply_plan
from migrate.apply.history import JournalState, read_history
from migrate.apply.outcome import RowStatus, is_committed_as_planned
from migrate.errors import MigrateError
from migrate.model import Commit, Commits, Failure, GroupState, Row
from migrate.plan.companions import journal_path
from migrate.plan.file import read_plan, write_plan
from migrate.plan.plan import Plan
from tests.fakes import Appended, Crash, FakeApplyEdges, FakeClock
from tests.unit.commands import plug_in, run_on_plan
from tests.unit.lifefakes import CALM, COLLEAGUE, Disk, Kind, OnTarget, Place, Target, Trouble, Write, befall
from tests.unit.plans import clusters

HERE, COPY = "here", "copy"
FOLDERS = (HERE, COPY)
DONE = (RowStatus.SET, RowStatus.REMOVED, RowStatus.ALREADY, RowStatus.MOVED_ON)


@dataclass(frozen=True)
class Saved:
    """An undo plan on disk: of which folder's journal, and how many deeds that had told of by then."""

    folder: str
    path: Path
    plan: Plan
    deeds: int

    @property
    def moved(self) -> str:
        return self.plan.header.settings["moved"]


@dataclass(frozen=True)
class Ran:
    """One command and how it ended: `code` is None where it was killed.

    `plan` is what was written, or would be (the undo, for a rollback); None where the command did not come to that.
    `before` is what the target showed when it began, `journal` what the folder's journal told then.
    """

    command: str
    folder: str
    plan: Plan | None
    execute: bool
    trouble: Trouble
    moved: str
    before: Mapping[str, Commits]
    journal: JournalState
    code: int | None
    said: str
    result: ApplyResult | None
    writes: tuple[Write, ...]
    readings: tuple[tuple[int, str, Commits | Failure], ...]
    states: Mapping[str, GroupState | Failure]
    asked: frozenset[str]
    undo: Saved | None = None
    judged: int | None = None
    alone: tuple[str, ...] = ()

    @property
    def restores(self) -> bool:
        return self.command in ("rollback", "apply undo")

    @property
    def calm(self) -> bool:
        return self.trouble == CALM

    def seen(self, group: str, until: int | None = None) -> Commits | None:
        """Return what the last reading of a group that succeeded before `until` showed; None if there was none.

        Without `until`, before the rows were judged: the look at other rows that follows says nothing of these.
        """
        until = self.judged if until is None else until
        found = [a for t, g, a in self.readings if g == group and (until is None or t < until)]
        return next((answer for answer in reversed(found) if not isinstance(answer, Failure)), None)

    def seen_at(self, row: Row) -> Commit | None:
        return (self.seen(row.group) or {}).get(row.target_partition)

    def seen_after_writing(self, group: str) -> bool:
        """True if a reading of a group succeeded after all writes to it."""
        last = max((w.tick for w in self.writes if w.group == group), default=0)
        return any(t > last and g == group and not isinstance(a, Failure) for t, g, a in self.readings)


@dataclass(frozen=True)
class Deed:
    """A write that was, or may yet be, carried out, in the order in which they were made."""

    restores: bool
    places: frozenset[Place]
    by: str
    alone: tuple[str, ...] = ()


class Life:
    """The two folders, the target, and the truth: what was there first, who wrote what, what was claimed."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.plan = plan
        self.folders = {HERE: folder / "here", COPY: folder / "copy"}
        for path in self.folders.values():
            path.mkdir(exist_ok=True)
            for left in path.iterdir():
                left.unlink()
        facts, _ = clusters(plan)
        self.target = Target(offsets=facts.offsets, states=facts.states, ranges=facts.ranges, ids=facts.ids)
        self.clock, self.disk = FakeClock(), Disk()
        self.saved: list[Saved] = []
        self.result: ApplyResult | None = None
        self.applied: Plan | None = None
        self.judged: int | None = None
        # The truth, by folder.
        self.first: dict[str, dict[str, Commits]] = {HERE: {}, COPY: {}}
        self.deeds: dict[str, list[Deed]] = {HERE: [], COPY: []}
        self.stood: dict[str, set[Place]] = {HERE: set(), COPY: set()}
        self.brought_back: dict[str, set[Place]] = {HERE: set(), COPY: set()}
        self.restored: dict[Place, tuple[str, Commit | None]] = {}
        with self.wired():
            write_plan(plan, self.plan_path(HERE))
        shutil.copy(self.plan_path(HERE), self.plan_path(COPY))
        self.journals = {folder: journal_path(self.plan_path(folder), plan.fingerprint) for folder in FOLDERS}
        self.rows = {(row.group, row.target_partition): row for row in plan.rows}

    @contextmanager
    def wired(self) -> Iterator[None]:
        """Plug the fakes in where the commands take their clusters, clock and disk from."""
        with pytest.MonkeyPatch.context() as patch:
            called = {group: rows.group_on_target for group, rows in self.plan.groups().items()}

            def observed(plan: Plan, *arguments: Any, **more: Any) -> ApplyResult:
                self.applied = plan
                self.result = apply_plan(plan, *arguments, **more)
                self.judged = self.target.tick + 1
                return self.result

            edges = nullcontext(FakeApplyEdges(OnTarget(self.target, called)))
            plug_in(patch, apply_plan=observed, apply_session=lambda *_: edges, get_ready=lambda: None)
            plug_in(patch, SystemClock=lambda: self.clock)
            patch.setattr("migrate.apply.journal.os", self.disk)
            patch.setattr("migrate.whole_file.os", self.disk)
            patch.setattr("migrate.apply.write.WINDOWS_PER_CHUNK", 1)
            yield

    # --- what anybody can look up ---------------------------------------------------------------------------

    def journal(self, folder: str) -> JournalState:
        """Return what a folder's journal of the plan tells; raises if it is damaged."""
        path = self.journals[folder]
        return told(path.read_bytes() if path.exists() else b"", self.plan.fingerprint)

    def plan_path(self, folder: str) -> Path:
        return self.folders[folder] / "cutover.plan"

    def group(self, which: int) -> str:
        groups = sorted(self.plan.groups())
        return groups[which % len(groups)]

    def at(self, place: Place) -> Commit | None:
        return self.target.offsets.get(place[0], {}).get(place[1])

    def unseen(self, place: Place) -> list[tuple[str, Commit | None]]:
        """Return what can still become visible there, and who wrote it."""
        late = zip(self.target.unseen.get(place[0], ()), self.target.unseen_by.get(place[0], ()), strict=True)
        return [(by, appended[place[1]]) for appended, by in late if place[1] in appended]

    def is_alive(self, group: str) -> bool:
        state = self.target.states.get(group)
        return state is not None and state.member_count > 0

    def written(self, folder: str) -> frozenset[Place]:
        """Return what apply with this folder's journal has written, or has appended and nobody sees yet."""
        return frozenset(p for deed in self.deeds[folder] if not deed.restores for p in deed.places)

    # --- what others do -------------------------------------------------------------------------------------

    def meddle(self, group: str, wanted: Appended) -> None:
        """Let a colleague, or a consumer, commit."""
        before, self.target.actor = self.target.actor, COLLEAGUE
        self.target._put(group, wanted)
        self.target.overtake(group, wanted.keys())
        self.target.actor = before
        self._disturbed(COLLEAGUE, group, wanted)

    def surface(self, group: str) -> None:
        """Let an append that was never acknowledged become visible."""
        by, wanted = self.target.unseen_by[group][0], self.target.unseen[group][0]
        self.target.surface(group)
        self._disturbed(by, group, wanted)

    def _disturbed(self, by: str, group: str, wanted: Appended) -> None:
        for p in wanted:
            if (kept := self.restored.get((group, p))) is not None and kept[0] != by:
                del self.restored[group, p]

    # --- commands -------------------------------------------------------------------------------------------

    def run(self, command: str, folder: str, trouble: Trouble = CALM, undo: Saved | None = None, **options: Any) -> Ran:
        """Run a command under trouble, note its deeds, and return all that its laws need."""
        execute = options.get("execute", False)
        path = undo.path if undo else self.plan_path(folder)
        self.clock.wait(1.0)
        self.target.forget()
        self.result = self.applied = self.judged = None
        before = {group: dict(commits) for group, commits in self.target.offsets.items()}
        told_before = self.journal(folder)
        paths = {undo.plan.fingerprint: journal_path(path, undo.plan.fingerprint)} if undo else {}
        paths |= {self.plan.fingerprint: self.journals[folder]}
        self.target.on_disk = lambda: {digits: self.disk.durable(path) for digits, path in paths.items()}
        self.target.actor = folder
        flow: Any = SimpleNamespace(target=None, source=None, synced=lambda groups: frozenset())
        words = {"approve": (undo or self).plan.fingerprint, **options}
        typed = {"save undo": "rollback", "apply undo": "apply"}.get(command, command)
        code, said = self._under(trouble, lambda: run_on_plan(typed, path, flow, **words))
        self.target.actor = COLLEAGUE
        plan = undo.plan if undo else self.plan if command in ("apply", "verify") else self.applied
        alone = set(options.get("groups", ()))
        ran = Ran(
            command, folder, plan, execute, trouble, options.get("moved", "refuse"), before, told_before, code, said,
            self.result, tuple(self.target.written), tuple(self.target.readings), dict(self.target.states_read),
            frozenset(self.target.asked), undo, self.judged,
            tuple(g for g, rows in self.plan.groups().items() if alone & {g, rows.group_on_target}),
        )  # fmt: skip
        self.target.forget()
        self._note(ran)
        return ran

    def _under(self, trouble: Trouble, command: Callable[[], tuple[list[str], int]]) -> tuple[int | None, str]:
        """Return the exit code, None if the command was killed, and what it said."""
        groups, theirs = self.plan.groups(), Commit(66, "meanwhile")
        meddle = lambda group: self.meddle(group, {groups[group][0].target_partition: theirs})  # noqa: E731
        befall(trouble, self.target, self.disk, sorted(groups), meddle)
        try:
            with self.wired():
                lines, code = command()
            return code, "\n".join(lines)
        except MigrateError as error:
            return error.exit_code, f"{error.problem}\n{error.todo}"
        except (Crash, KeyboardInterrupt):
            if trouble.kind is Kind.POWER_CUT:
                self._lose_what_was_not_synced()
            return None, ""
        finally:
            self.disk.let_go()
            self.disk.breaks = lambda descriptor, line: None

    def _lose_what_was_not_synced(self) -> None:
        for path in self.folders.values():
            for journal in path.glob("*.journal.jsonl"):
                os.truncate(journal, len(self.disk.durable(journal)))
        for folder, first in self.first.items():
            # A backup that a kill left unsynced may go, as long as nothing was written after it.
            saved = self.journal(folder).prior.keys() | {group for group, _ in self.written(folder)}
            self.first[folder] = {group: commits for group, commits in first.items() if group in saved}

    # --- the truth ------------------------------------------------------------------------------------------

    def _note(self, ran: Ran) -> None:
        by = ran.folder
        for write in ran.writes:
            if write.carried_out:
                places = frozenset((write.group, p) for p in write.wanted)
                self._disturbed(by if ran.restores else "", write.group, write.wanted)
                name = str(ran.undo.path) if ran.undo else ran.command
                self.deeds[by].append(Deed(ran.restores, places, name, ran.alone))
        if ran.plan is None or ran.command in ("verify", "save undo"):
            return
        if not ran.restores:
            for group in self.journal(by).prior.keys() - self.first[by].keys():
                met = next((a for _, g, a in ran.readings if g == group and not isinstance(a, Failure)), {})
                self.first[by][group] = met if ran.trouble.is_meddled else ran.before.get(group, {})
        claims = (self.brought_back if ran.restores else self.stood)[by]
        status = {r.key: r.status for r in ran.result.rows} if ran.result else {}
        written = (row for of_group in ran.plan.groups().values() for row in to_write(of_group))
        for row in written if ran.execute else ():
            # A run that was killed may have noted in the journal what it read back.
            read = is_committed_as_planned(row, ran.seen(row.group) or {}) and ran.seen_after_writing(row.group)
            if status.get(row.key) in DONE if status else read:
                claims.add((row.group, row.target_partition))
        if ran.restores and ran.code == 0 and ran.execute:
            for row in ran.plan.rows:
                place = (row.group, row.target_partition)
                if place in self.written(by) and self.at(place) == row.target_commit:
                    self.restored[place] = (by, row.target_commit)

    def save_undo(self, folder: str, moved: str) -> Ran:
        """Save the undo of what this folder's journal tells, under a new name."""
        path = self.folders[folder] / f"undo{len(self.saved)}.plan"
        ran = self.run("save undo", folder, out=path, moved=moved)
        if path.exists():
            self.saved.append(Saved(folder, path, read_plan(path), len(self.deeds[folder])))
        return ran


@lru_cache(maxsize=1000)
def told(journal: bytes, fingerprint: str) -> JournalState:
    """Return what the bytes of a journal tell."""
    return read_history(journal, "the journal", fingerprint)
