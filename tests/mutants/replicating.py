"""Behind another replicator: rows that timestamps place, and names by a map."""

from tests.mutants.mutant import Mutant

LAW_2B = "tests/unit/match/test_least_timestamp.py"
KEPT = "tests/unit/match/test_kept_timestamps.py"

REPLICATING = (
    Mutant(
        "unread-commits-at-a-sync-by-timestamp",
        "By timestamps nothing guards a sync: what was not read stands at the log's start.",
        "migrate/survey/take.py",
        "    if not context.request.limits.by_timestamp:\n",
        "    if True:\n",
        ("tests/unit/plan/test_translate.py",),
    ),
    Mutant(
        "time-of-the-nearest-records-only",
        "Where timestamps fall, no record that comes later with an earlier time is skipped.",
        "migrate/match/least_timestamp.py",
        "accumulate(reversed(self._least), min)",
        "accumulate(reversed(self._least), lambda later, own: own if own < NEVER else later)",
        (f"{LAW_2B}::test_a_later_record_with_an_earlier_time_pulls_the_row_down",),
    ),
    Mutant(
        "time-asked-for-exactly",
        "No record is skipped whose time a log's index gives to the end of its batch.",
        "migrate/match/least_timestamp.py",
        "    return least - 1 if 0 < least < NEVER else None\n",
        "    return least if 0 < least < NEVER else None\n",
        (f"{LAW_2B}::test_it_is_asked_for_one_millisecond_less",),
    ),
    Mutant(
        "times-that-retention-took-forgotten",
        "What retention removed before its time could be read is owed too.",
        "migrate/match/least_timestamp.py",
        "NEVER if committed >= start else 0",
        "NEVER if committed >= log.start else 0",
        (f"{LAW_2B}::test_retention_that_passes_a_commit_while_it_is_read_sends_it_to_the_log_start",),
    ),
    Mutant(
        "votes-against-kept-timestamps-ignored",
        "Copies that share some timestamps with their originals by chance place no row.",
        "migrate/match/least_timestamp.py",
        "        votes.is_refuted |= not lacking.isdisjoint(other)\n",
        "        pass\n",
        (f"{KEPT}::test_one_pair_of_equal_key_and_other_time_refutes_all_others",),
    ),
    Mutant(
        "timestamps-of-a-target-that-stamps-records-trusted",
        "Where the target stamps records itself, or may do so, no timestamp places a row.",
        "migrate/survey/records.py",
        '        and flow.turned(source_type, target_type)[1] == "CreateTime"\n',
        "",
        ("tests/unit/survey/test_records.py",),
    ),
    Mutant(
        "timestamps-behind-an-open-transaction-unknown",
        "No row passes over records whose timestamps an open transaction hides.",
        "migrate/checks/topics.py",
        "        if is_open and row.target_offset",
        "        if False and row.target_offset",
        (
            "tests/unit/checks/test_topics.py::test_beside_an_open_transaction_on_the_source_to_accept_that_it_is_not_"
            "drained_lets_no_row_by_timestamps_pass",
        ),
    ),
    Mutant(
        "drained-by-timestamps",
        "Timestamps say of no topic that all of it is copied.",
        "migrate/match/least_timestamp.py",
        "for g in question.source_committed}, Tail(None), read, 0)",
        "for g in question.source_committed}, Tail(0), read, 0)",
        (f"{LAW_2B}::test_timestamps_say_of_no_log_that_all_of_it_is_copied",),
    ),
    Mutant(
        "topics-that-share-a-name-moved",
        "Where two topics share a name on the target, no group of either is set.",
        "migrate/mm2/other_names.py",
        "        others = [topic for topic in self.sources.get(target, ()) if topic != source_topic]\n",
        "        others: list[str] = []\n",
        ("tests/unit/mm2/test_name_map.py",),
    ),
    Mutant(
        "names-asked-of-the-wrong-cluster",
        "On the way back, too, the names are those of the topics that were copied.",
        "migrate/survey/names.py",
        "    copied_from = flow.turned(clusters.source, clusters.target)[0]\n",
        "    copied_from = clusters.source\n",
        ("tests/unit/survey/test_names.py",),
    ),
    Mutant(
        "nobody-asked-and-yet-said",
        "Behind another replicator no check on MM2 passes.",
        "migrate/checks/checklist.py",
        "    other = check.case & ~survey.case\n",
        "    other = check.case & ~(survey.case | Case.BY_MM2)\n",
        (
            "tests/unit/checks/test_mm2.py"
            "::test_behind_another_replicator_every_check_on_mm2_says_that_nobody_asked_and_none_passes",
        ),
    ),
)
