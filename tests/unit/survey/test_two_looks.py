"""Two looks at who holds the groups: the livelier counts, and a source that is down is not asked."""

from migrate.model import Failure, GroupState, Side
from migrate.progress import Timer
from migrate.survey.groups import Listing, both_looks, list_again
from migrate.survey.survey import ClusterSurvey
from tests.fakes import ALIVE, EMPTY, FakeClock, FakeCluster, NoProgress

TIMER = Timer(FakeClock(), NoProgress())


def cluster(side: Side, **states: GroupState) -> FakeCluster:
    return FakeCluster(side, "A" if side is Side.SOURCE else "B", "id", states=dict(states))


def test_the_livelier_of_two_looks_counts_and_only_what_neither_listing_shows_is_absent() -> None:
    failed = Failure("X", "y")
    before = ClusterSurvey(listed=frozenset({"first"}), states=dict.fromkeys(["first", "second", "none", "up"], EMPTY))
    now = {"first": EMPTY, "second": EMPTY, "none": EMPTY, "up": ALIVE, "lost": failed}
    looked = both_looks(before, Listing(frozenset({"second"}), 3.0), now, ["first", "second", "none", "up", "lost"])
    states = {group: getattr(state, "state", "unknown") for group, state in looked.states.items()}
    assert states == {"first": "Empty", "second": "Empty", "none": "Absent", "up": ALIVE.state, "lost": "unknown"}
    assert looked.seconds_apart == 3.0 and looked.listed == before.listed


def test_a_second_listing_says_how_long_after_the_first_it_came() -> None:
    clock = FakeClock()
    timer, began = Timer(clock, NoProgress()), clock.monotonic()
    clock.wait(2.0)
    listing = list_again(cluster(Side.TARGET, g=EMPTY), began, timer)
    assert listing == Listing(frozenset({"g"}), 2.0)
