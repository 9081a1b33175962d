"""What the README promises of apply, rollback, undo plans and verify, as laws over one command and the truth.

`ALWAYS` are those that hold at any moment, `OF_A_COMMAND` those that a command that has just ended must keep.
"""

from migrate.apply.history import APPLY, ROLLBACK
from migrate.apply.outcome import RowOutcome, RowStatus, is_committed_as_planned
from migrate.model import Commit, Commits, Decision, Failure, Row
from tests.unit.lifefakes import Place
from tests.unit.planlife import FOLDERS, Life, Ran, told


def before(row: Row) -> Commit | None:
    return None if row.target_prior is None else Commit(row.target_prior, row.target_prior_metadata)


def journals_can_be_read_and_tell_of_the_first_state(life: Life) -> None:
    """Whatever broke, each journal can be read, and its prior offsets are those from before our first write."""
    for folder in FOLDERS:
        state = life.journal(folder)
        assert state.prior == life.first[folder], f"{folder}: {state.prior} != {life.first[folder]}"


def what_may_have_been_written_is_never_forgotten(life: Life) -> None:
    """Each row that apply has appended, seen or not, is one that its journal would undo."""
    for folder in FOLDERS:
        told = life.journal(folder).applied
        for group, p in life.written(folder):
            assert group in told and p in told[group].written(), f"{folder}: {group} {p}"


def what_was_restored_stays_restored(life: Life) -> None:
    """No late append brings back what a rollback that exited 0 has taken away."""
    for place, (_, commit) in life.restored.items():
        assert life.at(place) == commit, f"{place}: {life.at(place)} != {commit}"


def nothing_stands_that_nobody_wrote(life: Life) -> None:
    """A row is where it was first, where it was planned, or where a colleague put it."""
    for place, row in life.rows.items():
        if life.at(place) not in (before(row), row.target_commit):
            assert life.target.authors.get(place) not in FOLDERS or any(
                life.at(place) == first.get(row.group, {}).get(row.target_partition) for first in life.first.values()
            ), place


def no_commit_of_others_is_written_over(life: Life, ran: Ran) -> None:
    """What this run read last is as planned from, or as set by us; else it was asked to restore all the same."""
    for write in ran.writes:
        met = ran.seen(write.group, write.tick)
        assert met is not None and ran.plan is not None, f"{write.group} was written unread"
        rows = {r.target_partition: r for r in ran.plan.groups()[write.group]}
        for p in {*write.wanted, *(met if write.whole else ())}:
            if ran.restores and ran.moved == "restore" and p in rows:
                continue
            allowed = (before(rows[p]), rows[p].target_commit) if p in rows else (None,)
            assert met.get(p) in allowed, f"{write.group} {p}: {met.get(p)} is somebody else's"


def no_second_try_is_made_unseen(life: Life, ran: Ran) -> None:
    """Between two tries to write a group, it is read again: somebody may have committed there meanwhile."""
    tried: dict[Place, int] = {}
    for write in ran.writes:
        reads = [tick for tick, group, _ in ran.readings if group == write.group]
        for place in ((write.group, p) for p in write.wanted):
            last = tried.get(place)
            assert last is None or any(last < tick < write.tick for tick in reads), f"{place} was written unread"
            tried[place] = write.tick


def no_living_group_is_written(life: Life, ran: Ran) -> None:
    """A group that had members when this run looked is not asked to change."""
    for group in ran.asked:
        state = ran.states[group]
        assert not isinstance(state, Failure) and not state.member_count, group


def nothing_is_written_before_the_way_back_is_on_disk(life: Life, ran: Ran) -> None:
    """Prior offsets, the intent, and for an undo that the plan is spent, are synced before a write."""
    for write in ran.writes:
        own, *undone = (told(content, fingerprint) for fingerprint, content in write.on_disk.items())
        trace = own.traces(ROLLBACK if ran.command == "rollback" else APPLY)[write.group]
        assert write.group in own.prior
        for p, commit in write.wanted.items():
            assert p in trace.planned or write.whole
            offset = None if commit is None else commit.offset
            if offset is not None and ran.restores and trace.planned.get(p) is None:
                # What is to be removed is first committed once more, where no reading shows an unanswered write.
                doubted = (undone or [own])[0].traces(APPLY)[write.group]
                assert doubted.is_in_doubt(p) and doubted.planned[p] == offset
            else:
                assert trace.planned.get(p) == offset
        if ran.restores:
            assert (undone or [own])[0].is_spent or write.group in ran.alone


def a_row_called_set_was_seen_there(life: Life, ran: Ran) -> None:
    """Set, removed, already, kept: this very run has read it so, after its last write to the group."""
    for result, row in _results(ran):
        if result.status in (RowStatus.SET, RowStatus.REMOVED, RowStatus.ALREADY):
            assert ran.seen_after_writing(row.group), row.key
            assert is_committed_as_planned(row, ran.seen(row.group) or {}), row.key
        elif result.status is RowStatus.MOVED_ON:
            seen, claims = ran.seen_at(row), life.brought_back if ran.restores else life.stood
            assert (row.group, row.target_partition) in claims[ran.folder], row.key
            assert row.decision is Decision.REMOVE or (seen and seen.offset >= (row.target_offset or 0)), row.key
        elif result.status is RowStatus.KEPT:
            seen = ran.seen_at(row)
            assert seen == before(row) or (seen and seen.offset >= (row.target_prior or 0)), row.key


def exit_0_is_for_all_of_it(life: Life, ran: Ran) -> None:
    """0 only if every row is as planned, or would be, or was skipped; 1, 3 and 4 are the only other ends."""
    assert ran.code in (None, 0, 1, 3, 4), ran.said
    if ran.code == 0:
        good = {RowStatus.SET, RowStatus.REMOVED, RowStatus.ALREADY, RowStatus.KEPT, RowStatus.MOVED_ON}
        good |= {RowStatus.SKIPPED} if ran.execute else {RowStatus.SKIPPED, RowStatus.PLANNED}
        assert {result.status for result, _ in _results(ran)} <= good


def what_is_said_not_to_be_written_was_not(life: Life, ran: Ran) -> None:
    """A failed row stands elsewhere, and nothing of ours can still appear there; who is left out is not touched."""
    for result, row in _results(ran):
        mine = [w for w in ran.writes if w.group == row.group and row.target_partition in w.wanted]
        if result.status in (RowStatus.LEFT_OUT, RowStatus.PLANNED, RowStatus.SKIPPED):
            assert not mine, row.key
        elif result.status is RowStatus.FAILED and not result.acknowledged:
            late = life.unseen((row.group, row.target_partition))
            assert (ran.folder, row.target_commit) not in late, row.key
            if ran.seen(row.group) is not None and row.decision is not Decision.KEEP:
                assert row.needs_acknowledgement or not is_committed_as_planned(row, ran.seen(row.group) or {}), row.key


def who_refuses_has_written_nothing(life: Life, ran: Ran) -> None:
    """A dry run, a verification, a refusal and a failure leave the target as it is; a dry run the disk as well."""
    if not ran.execute or ran.code == 3:
        assert not ran.asked, ran.said
    if ran.code == 1:
        assert not any(w.carried_out for w in ran.writes), ran.said
    if not ran.execute:
        assert ran.journal == life.journal(ran.folder)


def a_spent_plan_is_not_applied(life: Life, ran: Ran) -> None:
    """Once a rollback or an undo has written, apply refuses; of a group that was rolled back alone, this group."""
    spent, alone = ran.journal.is_spent, ran.journal.spent_groups
    deeds = [deed for deed in life.deeds[ran.folder] if deed.restores and not ran.restores]
    assert spent or all(deed.alone and {group for group, _ in deed.places} <= alone for deed in deeds)
    if ran.command == "apply":
        assert not alone & ran.asked
    if ran.command == "apply" and spent:
        assert ran.code in (3, None) and not ran.asked


def a_calm_run_finishes(life: Life, ran: Ran) -> None:
    """Without errors apply and rollback end with 0, or 3 for groups that are blocked, alive, or moved by others.

    With 4 a rollback ends for what a copy has written.
    """
    if ran.command not in ("apply", "rollback") or not ran.calm or ran.code == 4 or ran.plan is None:
        return
    if ran.journal.is_spent if ran.command == "apply" else ran.result is None:
        return
    assert ran.code in (0, 3), ran.said
    refused = {g.group: ran.plan.groups()[g.group] for g in ran.result.assessment.refused} if ran.result else {}
    assert bool(refused) == (ran.code == 3), ran.said
    for group, rows in refused.items():
        held = ran.before.get(group, {})
        moved = ran.moved == "refuse" and any(is_moved(row, held) for row in rows)
        blocked = any(row.decision is Decision.BLOCK for row in rows) or group in ran.journal.spent_groups
        assert life.is_alive(group) or moved or (blocked and ran.command == "apply"), f"{group}: {ran.said}"


def is_moved(row: Row, held: Commits) -> bool:
    """Say whether somebody else has moved what the row is about: a kept one is not to be elsewhere at all."""
    known = (before(row),) if row.decision is Decision.KEEP else (before(row), row.target_commit)
    return row.decision is not Decision.SKIP and held.get(row.target_partition) not in known


def rollback_brings_back_the_first_state(life: Life, ran: Ran) -> None:
    """0 only if all that apply wrote is what it was before, metadata too, or was moved on since, and stays so."""
    if not ran.restores or ran.code != 0 or not ran.execute or ran.trouble.is_meddled:
        return
    places = life.written(ran.folder)
    if ran.undo is not None:
        places &= {(r.group, r.target_partition) for r in ran.undo.plan.rows}
    places = frozenset(place for place in places if not ran.alone or place[0] in ran.alone)
    for place in places:
        first = life.first[ran.folder][place[0]].get(place[1])
        moved_on = place in life.brought_back[ran.folder]
        assert life.at(place) == first or moved_on, f"{place}: {life.at(place)}, first {first}"
        late = [commit for by, commit in life.unseen(place) if by == ran.folder]
        assert all(commit == first for commit in late), f"{place}: {late} can still become visible"


def what_a_copy_has_written_is_named(life: Life, ran: Ran) -> None:
    """While rows stand that another folder's journal set, and not this one's, no way back is done."""
    if (ran.restores or ran.command == "save undo") and ran.code == 0 and ran.journal.events:
        told = life.journal(ran.folder).applied
        for (group, p), row in life.rows.items():
            if ran.alone and group not in ran.alone:
                continue
            other = life.target.authors.get((group, p)) in {*FOLDERS} - {ran.folder}
            ours = group in told and p in told[group].written()
            there = row.decision is Decision.SET and life.at((group, p)) == row.target_commit
            assert not (other and there and not ours and row.target_prior != row.target_offset), row.key


def a_stale_undo_is_refused(life: Life, ran: Ran) -> None:
    """An undo is not applied once more was written than it undoes, or anything was restored in another way."""
    if ran.undo is None or ran.command != "apply undo":
        return
    rows = {(r.group, r.target_partition) for r in ran.undo.plan.rows}
    own = sum(write.carried_out for write in ran.writes)
    since = life.deeds[ran.folder][ran.undo.deeds : len(life.deeds[ran.folder]) - own]
    stale = any(d.by != str(ran.undo.path) if d.restores else d.places - rows for d in since)
    if stale:
        assert ran.code in (3, None) and not ran.asked, ran.said
    if ran.journal.events == ran.undo.plan.header.undoes_events:
        assert "is not as it was when this undo was made" not in ran.said


def verified_means_as_planned(life: Life, ran: Ran) -> None:
    """0 only if all is as planned, or beyond while consumers run, and nothing was left out, in doubt or taken back.

    A group that `rollback --group` has spent is taken back, written or not: apply never writes it, so it is not said
    that apply has left it out.
    """
    if ran.command != "verify" or ran.plan is None:
        return
    given_up = ran.journal.spent_groups if ran.undo is None else frozenset[str]()
    good = ran.undo is None and not ran.journal.is_spent and not ran.journal.rolled_back and not given_up
    assert ran.code != 0 or not given_up & ran.plan.groups().keys(), ran.said
    beginnings = tuple(f"{group}{mark}" for group in given_up for mark in (": ", " -> "))
    left_out = [line for line in map(str.strip, ran.said.splitlines()) if "left out by apply" in line]
    assert ran.journal.is_spent or not any(line.startswith(beginnings) for line in left_out), ran.said
    for row in ran.plan.rows:
        seen = ran.before.get(row.group, {}).get(row.target_partition)
        wanted = before(row) if row.decision is Decision.KEEP else row.target_commit
        as_planned = seen == wanted and row.decision not in (Decision.SKIP, Decision.BLOCK)
        consumed = wanted and seen and seen.offset >= wanted.offset and life.is_alive(row.group)
        late = [commit for by, commit in life.unseen((row.group, row.target_partition)) if by == ran.folder]
        assert ran.code != 0 or as_planned or consumed, row.key
        assert ran.code != 0 or ran.undo is None or all(commit == wanted for commit in late), row.key
        good = good and as_planned
    assert not good or ran.code == 0, ran.said


def _results(ran: Ran) -> list[tuple[RowOutcome, Row]]:
    if ran.result is None or ran.plan is None:
        return []
    return list(zip(ran.result.rows, ran.plan.rows, strict=True))


ALWAYS = (
    journals_can_be_read_and_tell_of_the_first_state, what_may_have_been_written_is_never_forgotten,
    what_was_restored_stays_restored, nothing_stands_that_nobody_wrote,
)  # fmt: skip
OF_A_COMMAND = (
    no_commit_of_others_is_written_over, no_second_try_is_made_unseen, no_living_group_is_written,
    nothing_is_written_before_the_way_back_is_on_disk, a_row_called_set_was_seen_there, exit_0_is_for_all_of_it,
    what_is_said_not_to_be_written_was_not, who_refuses_has_written_nothing, a_spent_plan_is_not_applied,
    a_calm_run_finishes, rollback_brings_back_the_first_state, what_a_copy_has_written_is_named,
    a_stale_undo_is_refused, verified_means_as_planned,
)  # fmt: skip
