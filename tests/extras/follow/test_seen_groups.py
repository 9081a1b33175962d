"""What a pass does not write for what it could not see: logs that changed under it, commits that it read only once."""

from functools import partial

import pytest

from migrate.extras.follow.judge import WhyNot
from migrate.model import Failure
from tests.extras.follow.followscene import FollowScene, G, H, reasons
from tests.fakes import Script


def changed_topic(scene, side, now):
    """Let a pass find that topic t has another id, or none, at its last look at this cluster."""
    topic, cluster = {"source": ("t", scene.source), "target": ("A.t", scene.target)}[side]
    others = {name: of for name, of in cluster.ids.items() if name != topic}
    ids = others | ({topic: now} if now else {})
    if side == "source":
        cluster.when("high_watermarks", lambda: setattr(cluster, "ids", ids))
    else:
        scene.amid("states", lambda: setattr(cluster, "ids", ids))


@pytest.mark.parametrize(("side", "said"), [
    ("source", "t was deleted, or created anew, on the source"), ("target", "A.t: target topic id"),
])  # fmt: skip
@pytest.mark.parametrize("now", ["another", None])
def test_a_topic_that_is_created_anew_or_deleted_before_the_write_refuses_its_groups(tmp_path, side, said, now):
    """An offset of the old log is a place in the new one, too: records that nobody has read would be passed over."""
    scene = FollowScene(tmp_path)
    changed_topic(scene, side, now)
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.CHANGED} and result.unsafe == ("g",)
    assert said in result.refused["g"].sentence
    assert scene.on_b("g") == {} and scene.on_b("h") == H
    assert scene.look().refused == {} and scene.on_b("g") == G, "the next pass sees the new one alone"


@pytest.mark.parametrize("side", ["source", "target"])
def test_where_a_cluster_tells_no_topic_ids_none_are_compared(tmp_path, side):
    scene = FollowScene(tmp_path)
    getattr(scene, side).ids.clear()
    changed_topic(scene, side, "told only now")
    assert scene.look().refused == {} and scene.on_b("g") == G


@pytest.mark.parametrize(("side", "reason"), [
    ("source", WhyNot.COMMITS), ("target", WhyNot.COMMITS), ("source", WhyNot.MOVING),
])  # fmt: skip
@pytest.mark.parametrize("accepted", [(), ("g",)])
def test_a_group_whose_commits_move_without_a_member_or_were_read_only_once_is_not_written_unless_that_was_accepted(
    tmp_path, side, reason, accepted
):
    """A reader that assigns partitions itself is only ever seen by its commits: unseen, it may be there."""
    scene = FollowScene(tmp_path, changes={"moving_group": accepted})
    scene.target.commit("g", "A.t", 0, 5)
    cluster = getattr(scene, side)
    if reason == WhyNot.COMMITS:
        moves = Script(failure=Failure("NOT_COORDINATOR", "it moves"))
        scene.amid("commits", partial(cluster.script, "commits", "g", moves), at=1, on=cluster)
    else:
        cluster.when("high_watermarks", partial(cluster.commit, "g", "t", 0, 56))
    result = scene.look()
    assert reasons(result) == ({} if accepted else {"g": reason}) and result.unsafe == tuple(reasons(result))
