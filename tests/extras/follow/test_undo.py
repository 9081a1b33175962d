"""The way back from what was written under a mandate: each place to its first state, and only where ours stands."""

import pytest

from migrate.model import Decision, Failure
from migrate.plan.plan import RESTORE_MOVED
from migrate.show.apply import apply_lines
from migrate.show.next_steps import Typed
from tests.extras.follow.followscene import T0, T1, FollowScene
from tests.fakes import Script


def rows(undo):
    return {r.target_partition: (r.decision, r.target_prior, r.target_offset, r.reason) for r in undo.rows}


def test_it_goes_from_our_last_write_to_what_stood_there_first_or_to_nothing(tmp_path):
    scene = FollowScene(tmp_path, changes={"group": ("g",)})
    scene.target.commit("g", "A.t", 0, 5)
    scene.look()
    scene.source.commit("g", "t", 0, 70)
    scene.look()
    undo = scene.undo()
    assert rows(undo) == {T0: (Decision.SET, 70, 5, "was-there"), T1: (Decision.REMOVE, 60, None, "was-absent")}
    assert undo.rows[0].source_topic == "t" and undo.header.undoes == scene.plan.fingerprint
    assert undo.header.kind == "undo"


def test_what_was_never_written_is_not_undone(tmp_path):
    scene = FollowScene(tmp_path, changes={"group": ("g",)})
    scene.target.script("alter", "g", Script(Failure("GROUP_AUTHORIZATION_FAILED", "no")))
    scene.look()
    assert not scene.undo().rows


def test_only_a_group_in_doubt_or_with_metadata_needs_to_be_looked_at(tmp_path):
    scene = FollowScene(tmp_path)
    scene.target.commit("h", "A.u", 0, 3, "m")
    scene.look()
    assert scene.known("h").has_metadata and not scene.known("g").has_metadata
    assert not scene.known("g").trace.has_doubts
    scene._writer.intend({"g": {T0: 70}})
    assert scene.known("g").trace.has_doubts


@pytest.mark.parametrize("now", [75, 4])
def test_an_offset_that_moved_since_is_said_to_be_set_by_follow_and_moved_by_nobody_in_particular(tmp_path, now):
    scene = FollowScene(tmp_path, changes={"group": ("g",)})
    scene.look()
    scene.target.commit("g", "A.t", 0, now)
    refused = scene.rollback(execute=False)
    told = said(refused)
    way = f"moved on by {now - 55}" if now > 55 else f"moved back by {55 - now}"
    assert f"expected 55 (what follow set), seen {now}: {way} since: a consumer or another client" in told
    assert "offsets have moved since follow set them" in told.lower()
    restored = said(scene.rollback(moved=RESTORE_MOVED, execute=False))
    assert f"follow set 55, now {now}" in restored
    for text in (told, restored):
        assert "apply set" not in text and "since the apply" not in text and "a consumer ran" not in text


def said(result):
    return "\n".join(apply_lines(result, Typed("rollback", "mandate.plan", ()), "f" * 64, 1000, False))
