"""Seeds of what tests draw at random: new ones each time, or the one that a run is given with `--seed`."""

import os
from random import SystemRandom

VARIABLE = "MM2_MIGRATE_TEST_SEED"
SEEDS = 10**6


def new_seed() -> int:
    """Return a seed that nobody chose, or the one given. Who draws by it says it wherever something fails."""
    given = os.environ.get(VARIABLE)
    return SystemRandom().randrange(SEEDS) if given is None else int(given)
