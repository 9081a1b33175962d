"""An audit never calls complete, or missing, what it could not see."""

from tests.mutants.mutant import Mutant

HERE = "migrate/extras/audit/"
TESTS = "tests/extras/audit/unit/"
VERDICT, STRETCHES, STATE = (f"{TESTS}test_{name}.py" for name in ("verdict", "stretches", "state"))

MUTANTS = (
    Mutant(
        "copies-from-the-other-cluster-passed-over-in-silence",
        "What is not looked at is named.",
        f"{HERE}pin.py",
        "left_out = tuple(t for t in others if not flow.policy.is_internal(t))",
        "left_out = tuple(t for t in others if flow.policy.why_not_replicated(t) is None)",
        (f"{TESTS}test_pin.py",),
    ),
    Mutant(
        "plan-audited-from-its-furthest-commit",
        "All that some group of a plan is owed is looked at.",
        f"{HERE}owed.py",
        "min(source, place.source_offset), min(target, place.target_offset)",
        "max(source, place.source_offset), min(target, place.target_offset)",
        (f"{TESTS}test_owed.py",),
    ),
    Mutant(
        "logs-that-are-not-those-of-the-plan-prove-it",
        "A topic that was created anew since the plan was made is not proven.",
        f"{HERE}owed.py",
        "            if planned and now and planned != now\n",
        "            if not planned and now and planned != now\n",
        (f"{TESTS}test_owed.py",),
    ),
    Mutant(
        "folder-of-whole-logs-goes-on-with-a-plan",
        "Sums of another part of the logs never count.",
        f"{HERE}state.py",
        "            if state.part != part:\n",
        "            if not state:\n",
        (STATE,),
    ),
    Mutant(
        "stretches-compared-by-counts-alone",
        "A stretch agrees only if it has the same records.",
        f"{HERE}stretches.py",
        "if self._beyond(each) != self.extras.get(each, NO_EXTRAS)[:2]}",
        "if self._beyond(each)[0] != self.extras.get(each, NO_EXTRAS)[0]}",
        (STRETCHES,),
    ),
    Mutant(
        "removed-copies-called-missing",
        "What the target's retention took may have been a copy.",
        f"{HERE}verdict.py",
        "    return Bounds(facts.first_copied, copied_to)\n",
        "    return Bounds(0, copied_to)\n",
        (VERDICT,),
    ),
    Mutant(
        "hidden-copies-called-missing",
        "What an open transaction on the target hides may be a copy.",
        f"{HERE}verdict.py",
        "        copied_to = min(copied_to, behind_last)\n",
        "        pass\n",
        (VERDICT,),
    ),
    Mutant(
        "unproven-called-complete",
        "Complete is only what has nothing left open.",
        f"{HERE}verdict.py",
        "        return Verdict.NOT_PROVEN if self.reasons else Verdict.COMPLETE\n",
        "        return Verdict.NOT_PROVEN if self.unproven else Verdict.COMPLETE\n",
        (VERDICT,),
    ),
    Mutant(
        "truncated-log-taken-for-read",
        "A log that ends below what was read of it is read afresh.",
        f"{HERE}stretches.py",
        "pinned[p].end < end for p, end",
        "pinned[p].end < 0 * end for p, end",
        (STRETCHES,),
    ),
    Mutant(
        "settled-stretches-take-in-what-is-new",
        "What is not copied is found in a stretch that once lacked nothing.",
        f"{HERE}stretches.py",
        "if self._beyond(each) != self.extras.get(each, NO_EXTRAS)[:2]}",
        "if each not in self.extras and self._beyond(each) != NO_EXTRAS[:2]}",
        (STRETCHES,),
    ),
    Mutant(
        "folder-of-other-clusters-goes-on",
        "Sums of other clusters never count.",
        f"{HERE}state.py",
        "            if state.cluster_ids != cluster_ids:\n",
        "            if not state.cluster_ids:\n",
        (STATE,),
    ),
)
