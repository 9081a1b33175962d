"""What a pass does not write for what it could not see: logs that changed under it, commits that it read only once."""

from functools import partial

import pytest

from migrate.extras.follow.judge import WhyNot
from migrate.extras.follow.seen_groups import other_topics
from migrate.model import Failure
from tests.extras.follow.followscene import FollowScene, G, H, reasons
from tests.fakes import Script


@pytest.fixture
def scene(tmp_path):
    made = FollowScene(tmp_path)
    yield made
    made.die()


@pytest.mark.parametrize("now", ["another", None])
def test_a_source_topic_that_is_created_anew_after_its_commits_were_read_refuses_its_groups(scene, now):
    """A commit of the old log is a place in the new one, too: records that nobody has read would be passed over."""

    ids = {"u": scene.source.ids["u"]} | ({"t": now} if now else {})
    scene.source.when("high_watermarks", lambda: setattr(scene.source, "ids", ids))
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.CHANGED} and result.unsafe == ("g",)
    assert result.refused["g"].sentence.startswith("t was deleted, or created anew, on the source")
    assert scene.on_b("g") == {} and scene.on_b("h") == H


def test_where_the_source_tells_no_topic_ids_none_are_compared(scene):
    scene.source.ids.clear()
    assert scene.look().refused == {} and scene.on_b("g") == G
    assert other_topics({"t": ""}, lambda topics: {"t": "told only now"}) == frozenset()


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_group_whose_commits_could_not_be_read_a_second_time_is_not_written(tmp_path, side):
    """A reader that assigns partitions itself is only ever seen by its commits: unseen, it may be there."""
    for accepted, expected in ((), {"g": WhyNot.COMMITS}), (("g",), {}):
        scene = FollowScene(tmp_path / f"{side}{len(accepted)}", changes={"moving_group": accepted})
        scene.journal.path.parent.mkdir()
        cluster = getattr(scene, side)
        if side == "target":
            cluster.commit("g", "A.t", 0, 5)
        moves = Script(failure=Failure("NOT_COORDINATOR", "it moves"))
        scene.amid("commits", partial(cluster.script, "commits", "g", moves), at=1, on=cluster)
        result = scene.look()
        assert reasons(result) == expected, side
        assert result.unsafe == tuple(expected)
        scene.die()
