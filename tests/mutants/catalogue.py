"""All mutants, in the order of what they break: where a group is set, how it is written, what is said of it.

Those of an extra lie beside its tests.
"""

from importlib import import_module
from pathlib import Path

from tests.mutants.exporting import EXPORTING
from tests.mutants.matching import MATCHING, TABLES, WORLDS
from tests.mutants.mutant import Mutant
from tests.mutants.renaming import RENAMING
from tests.mutants.replicating import REPLICATING
from tests.mutants.saying import SAYING
from tests.mutants.writing import WRITING

TESTS = Path(__file__).parents[1]
EXTRAS = [
    import_module(f"tests.extras.{file.parent.name}.mutants") for file in sorted(TESTS.glob("extras/*/mutants.py"))
]

MUTANTS: tuple[Mutant, ...] = (
    *WORLDS,
    *MATCHING,
    *TABLES,
    *WRITING,
    *SAYING,
    *EXPORTING,
    *RENAMING,
    *REPLICATING,
    *(mutant for extra in EXTRAS for mutant in extra.MUTANTS),
)
