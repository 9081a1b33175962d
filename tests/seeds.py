"""Seeds of what tests draw at random: the same ones in every default run, new ones with `--long`."""

import os
from random import SystemRandom

VARIABLE = "MM2_MIGRATE_TEST_SEED"
DEFAULT_SEED = 1
SEEDS = 10**6


def new_seed() -> int:
    """Return the seed of the run, or one that nobody chose. Who draws by it says it wherever something fails."""
    given = os.environ.get(VARIABLE)
    return SystemRandom().randrange(SEEDS) if given is None else int(given)
