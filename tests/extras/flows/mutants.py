"""Several flows of one file: what each takes from it, and what they share."""

from tests.mutants.mutant import Mutant

HERE = "migrate/extras/flows/"
PLAN, MEMORY = "tests/extras/flows/unit/test_plan.py", "tests/extras/flows/unit/test_source_memory.py"

MUTANTS = (
    Mutant(
        "moved-commits-denied-from-memory",
        "A plan of several that asks a second time whether commits have moved is told what is committed by then.",
        f"{HERE}source_memory.py",
        "self._remembered.pop(g) for g",
        "self._remembered[g] for g",
        (MEMORY,),
    ),
    Mutant(
        "ids-newer-than-commits",
        "A commit that an earlier plan has read is never given the id of a topic that was created after it.",
        f"{HERE}source_memory.py",
        "        if self._memory.ids is None:\n",
        "        if True:\n",
        (MEMORY,),
    ),
    Mutant(
        "names-of-digits-become-numbers",
        "A group that is called 0042 in a flow is not group 34.",
        "migrate/mm2/yaml_file.py",
        'for _kind in ("int", "float", "timestamp"):',
        'for _kind in ("float", "timestamp"):',
        (PLAN,),
    ),
    Mutant(
        "environment-reaches-into-a-flow",
        "A flow of a file takes nothing from the environment.",
        f"{HERE}plan.py",
        "        parameter.envvar = None\n",
        "        pass\n",
        (PLAN,),
    ),
    Mutant(
        "no-group-means-every-group",
        "A flow with an empty list of groups is refused, and never plans every group.",
        f"{HERE}plan.py",
        "is not None and named.value == []:",
        "is not None and named.value is False:",
        (PLAN,),
    ),
)
