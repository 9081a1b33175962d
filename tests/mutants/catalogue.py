"""All mutants, in the order of what they break: where a group is set, how it is written, what is said of it."""

from tests.mutants.comparing import COMPARING
from tests.mutants.exporting import EXPORTING
from tests.mutants.following import FOLLOWING
from tests.mutants.history import TELLING_HISTORY
from tests.mutants.holding import HOLDING
from tests.mutants.matching import MATCHING, TABLES, WORLDS
from tests.mutants.mutant import Mutant
from tests.mutants.renaming import RENAMING
from tests.mutants.replicating import REPLICATING
from tests.mutants.saying import SAYING
from tests.mutants.writing import WRITING

MUTANTS: tuple[Mutant, ...] = (
    *WORLDS,
    *MATCHING,
    *TABLES,
    *WRITING,
    *SAYING,
    *COMPARING,
    *EXPORTING,
    *TELLING_HISTORY,
    *HOLDING,
    *RENAMING,
    *REPLICATING,
    *FOLLOWING,
)
