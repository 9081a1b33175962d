"""Hand-written worlds held against every law: what the tests of single cases of the matching share.

Worlds are written as in the design (`tests/world/notation.py`): `u@d` is a copy of source record u at target d, A:
altered, `?`: in an open transaction, `~`: gone from the source. Beside what each names, no case may lose a record.
The cases that broke earlier wordings of the laws are called C1 to C11.
"""

from migrate.match.protocol import Matched, PartitionAnswer
from tests.integration import oracle
from tests.world.judge import judge
from tests.world.model import World
from tests.world.notation import explained
from tests.world.runner import answer


def judged(world: World) -> PartitionAnswer:
    """Ask, and hold the answer against every law; returns it for what the case adds."""
    run = answer(world)
    judgement = judge(world, run)
    # A copy that was changed on the way counts as missing: it is not recognised.
    broken = {violation.kind for violation in judgement.violations} - {"missing-invented-changed"}
    assert not broken, "\n" + explained(judgement, run)
    for g, place in run.answer.places.items():
        assert isinstance(place, Matched), place
        assert not oracle.lost(world.truth, g, place.target_offset)
    return run.answer


def place(answered: PartitionAnswer, g: int) -> Matched:
    """The row of a commit, which must have been matched."""
    row = answered.places[g]
    assert isinstance(row, Matched), row
    return row
