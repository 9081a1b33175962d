"""Where a group is set: translation, and the comparing of records."""

from tests.mutants.mutant import Mutant

CROSSED = "tests/unit/match/test_matching_laws.py::test_no_law_is_broken_where_troubles_cross"
BUDGET = (
    "tests/unit/match/test_matching_laws.py::test_no_excuse_is_used_more_often_than_its_ceiling_and_answers_say_enough"
)
LITTLE = "tests/unit/match/test_matching_laws.py::test_no_law_is_broken_where_little_may_be_read"
BEST = (
    "tests/unit/match/test_matching_laws.py"
    "::test_where_records_are_neither_dropped_nor_changed_almost_every_row_stands_at_the_best"
)
TINY = "tests/unit/match/test_matching_laws.py::test_no_law_is_broken_in_tiny_worlds_whose_edges_are_near"

# Tables that stand in for dictionaries, and the quick ways past rows that nothing is to be said of.
TABLES = (
    Mutant(
        "checkpoint-of-the-last-line",
        "Of two checkpoints of a key the one at the greater position counts.",
        "migrate/mm2/checkpoint_table.py",
        "    for place in sorted(range(len(written.positions)), key=written.positions.__getitem__):\n",
        "    for place in range(len(written.positions)):\n",
        ("tests/unit/mm2/test_checkpoint_table.py",),
    ),
    Mutant(
        "tombstones-kept-as-checkpoints",
        "A tombstone takes the checkpoints before it away.",
        "migrate/mm2/checkpoint_table.py",
        " if not written.is_tombstone[place]}\n",
        "}\n",
        ("tests/unit/mm2/test_checkpoint_table.py",),
    ),
    Mutant(
        "upper-sync-forgotten-on-the-way",
        "A place comes back from Spark with both of its syncs.",
        "migrate/match/place_table.py",
        "below, above)\n",
        "below, None)\n",
        ("tests/unit/match/test_place_table.py",),
    ),
    Mutant(
        "epochs-dropped-from-commits",
        "A commit keeps its leader epoch: it may prove that the commit is of another log.",
        "migrate/commit_table.py",
        '        self._epochs = array("q") if packed.count(_NO_EPOCH) == len(packed) else packed\n',
        '        self._epochs = array("q")\n',
        ("tests/unit/test_commit_table.py",),
    ),
    Mutant(
        "one-row-of-many-found",
        "A check sees every row that it is about.",
        "migrate/row_table.py",
        "                yield from table if holds(column[0]) else ()\n",
        "                yield from table[:1] if holds(column[0]) else ()\n",
        ("tests/unit/test_row_table.py",),
    ),
    Mutant(
        "group-that-is-there-taken-for-usual",
        "Of a group that is at its place already the rules say so: it is not set.",
        "migrate/plan/usual_rows.py",
        "p.offset < t for p, t",
        "p.offset <= t for p, t",
        ("tests/unit/plan/test_usual_rows.py",),
    ),
    Mutant(
        "commit-beyond-the-end-taken-for-usual",
        "A commit beyond the source's end is never placed, whatever records say.",
        "migrate/plan/usual_rows.py",
        "        and all(map(le, offsets, application.source_ends))\n",
        "",
        ("tests/unit/plan/test_usual_rows.py",),
    ),
    Mutant(
        "windows-left-behind",
        "Groups that are decided elsewhere have the syncs around their commits with them.",
        "migrate/plan/decide.py",
        "window_at=_held({at: window for at in offsets if (window := facts.window_at(at)) is not NO_WINDOW})",
        "window_at=_held({})",
        ("tests/unit/plan/test_decide.py",),
    ),
    Mutant(
        "spark-ended-under-its-tasks",
        "Spark lasts until its tasks have decided the rows.",
        "migrate/cli/plan_wiring.py",
        "        if not decider.takes(rows):\n            spark.end_session()\n",
        "        spark.end_session()\n",
        ("tests/unit/cli/test_wiring.py",),
    ),
    Mutant(
        "read-ranges-not-joined",
        "What was read in parts is known as a whole.",
        "migrate/match/partial_log.py",
        "            start, end = min(start, starts[low]), max(end, ends[top - 1])\n",
        "            pass\n",
        ("tests/unit/match/test_partial_log.py",),
    ),
)

# Seen by the simulated worlds alone: each is an answer that their judge must not excuse.
WORLDS = (
    Mutant(
        "end-where-syncs-are-few",
        "Where a topic has at most two syncs and timestamps are not kept, no record is lost.",
        "migrate/match/placement.py",
        "        offset = self._target.offsets[index] if index < aligned.target.top else aligned.target.end\n",
        "        offset = self._target.offsets[index] if index < aligned.target.top else aligned.target.end\n"
        "        if len(question.sync_pairs) <= 2 and not self._logs.keeps_time:\n"
        "            offset = self._target.end\n",
        (CROSSED, LITTLE, TINY),
    ),
    Mutant(
        "law-2-at-the-end",
        "A row of Law 2 stands at the smaller of a proven sync and a timestamp, not at the target's end.",
        "migrate/match/sync_only.py",
        "        return Unmatched(reason, guard, pair, refuted)\n",
        "        return Unmatched(reason, logs.target.end, (committed, logs.target.end))\n",
        (BUDGET, LITTLE, TINY),
    ),
    Mutant(
        "law-2-always-at-the-end",
        "A row whose window is too long to read does not stand at the target's end.",
        "migrate/match/sync_only.py",
        "    if pair is None or guard is None or not is_bounded:\n",
        "    if True:\n        return Unmatched(reason, logs.target.end, (committed, logs.target.end))\n"
        "    if pair is None:\n",
        (BUDGET, LITTLE, TINY),
    ),
    Mutant(
        "missing-hidden-as-not-read",
        "Owed records without a copy are counted in the row, which does not call them not read.",
        "migrate/match/placement.py",
        "        if not question.failback:\n            superseded",
        "        if missing:\n            missing, why = 0, Why.NOT_ALL_READ\n"
        "        if not question.failback:\n            superseded",
        (BUDGET, LITTLE, TINY),
    ),
    Mutant(
        "no-place-where-headers-change",
        "Records are compared by what the way keeps of them, and not only where it keeps all.",
        "migrate/match/matcher.py",
        "    matcher = PartitionMatcher(question)\n",
        "    matcher = PartitionMatcher(question)\n"
        "    if question.equality is not Equality.ALL:\n"
        '        return matcher.unreadable("UNKNOWN")\n',
        (BEST,),
    ),
    Mutant(
        "no-place-where-contents-change",
        "Where contents are changed on the way, records are compared by time and key.",
        "migrate/match/matcher.py",
        "    matcher = PartitionMatcher(question)\n",
        "    matcher = PartitionMatcher(question)\n"
        "    if question.equality is Equality.TIME_AND_KEY:\n"
        '        return matcher.unreadable("UNKNOWN")\n',
        (BUDGET, LITTLE, TINY),
    ),
    Mutant(
        "few-syncs-are-enough",
        "What a converter changes is seen where the few records that syncs name happen to lack it.",
        "migrate/match/calibration.py",
        "        if len(pairs) >= ANCHORS and not _is_in_doubt(pairs):\n",
        "        if pairs:\n",
        ("tests/unit/match/test_calibration.py",),
    ),
    Mutant(
        "unplaced-commits-without-a-window",
        "A commit that no records place is placed by its window of syncs.",
        "migrate/survey/take.py",
        "    if syncs_topic.pinned is not None and questions:\n",
        "    if syncs_topic.pinned is not None and not comparison:\n",
        ("tests/unit/survey/test_records.py",),
    ),
    Mutant(
        "header-that-few-have-overlooked",
        "Where a few records leave open whether headers are kept, more are read.",
        "migrate/match/calibration.py",
        "        if _is_in_doubt(pairs) and topic.has_more(FURTHER):\n",
        "        if not pairs and topic.has_more(FURTHER):\n",
        ("tests/unit/match/test_calibration.py",),
    ),
    Mutant(
        "aborted-ends-end-the-search",
        "Where no record near the ends is on both sides, more are read.",
        "migrate/match/calibration.py",
        "    return not pairs or not is_clear(pairs)",
        "    return not is_clear(pairs)",
        ("tests/unit/match/test_calibration.py",),
    ),
    Mutant(
        "broken-lines-are-unreadable-logs",
        "A connection that breaks says nothing about a partition.",
        "migrate/kafka/read_pass.py",
        '"_RESOLVE", "_DESTROY_BROKER"',
        '"_RESOLVE"',
        ("tests/unit/kafka/test_record_reader.py",),
    ),
    Mutant(
        "never-drained",
        "Where MM2 has copied everything, the records say so.",
        "migrate/match/matcher.py",
        "        tail = Tail(facts.uncopied, self._last_record(), self._waiting_since(facts), facts.foreign)\n",
        "        tail = Tail(facts.uncopied or None, self._last_record(), self._waiting_since(facts), facts.foreign)\n",
        (BUDGET, LITTLE, TINY),
    ),
    Mutant(
        "tail-says-nothing",
        "How much MM2 has yet to copy is said by the records.",
        "migrate/match/matcher.py",
        "        tail = Tail(facts.uncopied, self._last_record(), self._waiting_since(facts), facts.foreign)\n",
        "        tail = Tail(None, self._last_record(), self._waiting_since(facts), facts.foreign)\n",
        (BUDGET, LITTLE, TINY),
    ),
)


MATCHING = (
    Mutant(
        "timestamps-kept-by-chance",
        "A few records of the target's end that are on the source at their time do not show that it is kept.",
        "migrate/match/calibration.py",
        "return 0 < asked <= 2 * found",
        "return found > 0",
        ("tests/unit/match/test_calibration.py",),
    ),
    Mutant(
        "timestamps-lost-by-looks",
        "Records that repeat what others said do not show that timestamps are changed on the way.",
        "migrate/match/calibration.py",
        "keeps_time = _are_there(topic, wanted, originals)",
        "keeps_time = False",
        ("tests/unit/match/test_calibration.py",),
    ),
    Mutant(
        "copies-before-their-originals",
        "No copy is older than its original: a load of the night before is none of this night's.",
        "migrate/match/anchors.py",
        "return copy_ms + SKEW_MS >= original_ms",
        "return True",
        ("tests/unit/match/test_here_comparer.py",),
    ),
    Mutant(
        "lost-copies-still-to-come",
        "What MM2's own position has passed is not to come any more: the target has lost it.",
        "migrate/match/placement.py",
        "            passed = min(top, self._source.index(position + 1))\n",
        "            passed = 0\n",
        ("tests/unit/match/test_placement.py",),
    ),
    Mutant(
        "refuted-syncs-bound-a-row",
        "A sync whose two records differ is of another log, and bounds nothing.",
        "migrate/plan/translate.py",
        "    elif answer.refuted:\n        around",
        "    elif False:\n        around",
        ("tests/unit/plan/test_translate.py",),
    ),
    Mutant(
        "one-record-too-far",
        "No group skips the record that its row stands at.",
        "migrate/match/placement.py",
        "            target_offset=offset,\n            why=why,\n",
        "            target_offset=min(offset + 1, self._target.end),\n            why=why,\n",
        (
            "tests/unit/match/test_matcher.py::test_c1_a_target_recreated_whose_sync_was_not_written_does_not_hide_the_record_that_went_on",
        ),
    ),
    Mutant(
        "first-record-never-copied-again",
        "After a replay a row stands at the last copies, not behind the first.",
        "migrate/match/copies.py",
        "        if self._trusts_last or len(copies) == 1:\n            return copies[-1]\n",
        "        if self._trusts_last or len(copies) == 1:\n            return copies[0]\n",
        ("tests/unit/match/test_tail.py::test_c4_where_the_syncs_of_the_replay_are_lost",),
    ),
    Mutant(
        "chain-not-filtered",
        "A sync that a later one contradicts is dropped (Law 1).",
        "migrate/mm2/chain.py",
        "        if sync.source_offset < least_source and sync.target_offset < least_target:\n",
        "        if sync.source_offset < least_source:\n",
        ("tests/unit/mm2/test_chain.py::test_a_recreated_target_topic_discards_every_sync_of_the_old_one",),
    ),
    Mutant(
        "stale-syncs-inside-believed",
        "A sync at or beyond the end of a log tells of one that is gone, and is dropped (Law 1).",
        "migrate/mm2/chain.py",
        "if s.source_offset < source_end and s.target_offset < target_end]",
        "if s.source_offset < source_end]",
        ("tests/unit/mm2/test_chain.py::test_a_truncated_target_log_discards_syncs_at_or_beyond_its_end",),
    ),
    Mutant(
        "syncs-believed-unread",
        "A sync closes a window only when its two records were read and are equal.",
        "migrate/match/anchors.py",
        "        if source.prints[i] != target.prints[j]:\n",
        "        if False:\n",
        (
            "tests/unit/match/test_matcher.py::test_c1_a_target_recreated_whose_sync_was_not_written_does_not_hide_the_record_that_went_on",
        ),
    ),
    Mutant(
        "distance-added",
        "A row of a window stands right behind the lower sync; the distance is never added.",
        "migrate/mm2/chain.py",
        "    return lower.target_offset + (lower.source_offset < source_committed)\n",
        "    return lower.target_offset + source_committed - lower.source_offset\n",
        (
            "tests/unit/mm2/test_chain.py::test_between_syncs_the_offset_after_the_lower_one_is_taken_and_never_the_distance_added",
        ),
    ),
    Mutant(
        "floor-left-out",
        "Where an owed record has no copy, the row moves down to the first record of unknown origin.",
        "migrate/match/placement.py",
        "            index = min(best, floor.of(first, best))\n",
        "            index = max(best, floor.of(first, best))\n",
        ("tests/unit/match/test_placement.py::test_c2_an_altered_record_before_a_kept_one_is_not_stepped_over",),
    ),
    Mutant(
        "look-alikes-at-the-higher",
        "Of records that nothing tells apart the row takes the lowest candidate.",
        "migrate/match/copies.py",
        "            return copies[max(0, first - nth)], False\n        return candidates[0], False\n",
        "            return copies[max(0, first - nth)], False\n        return candidates[-1], False\n",
        ("tests/unit/match/test_copies.py::test_of_records_that_nothing_tells_apart_the_lowest_counts",),
    ),
    Mutant(
        "not-copied-yet-not-counted",
        "Records before the commit that MM2 has yet to copy are read twice, and counted.",
        "migrate/match/placement.py",
        "            rereads_at_most=rereads + uncopied,\n",
        "            rereads_at_most=rereads,\n",
        ("tests/unit/match/test_placement.py::test_a_group_ahead_of_mm2_reads_again_what_is_still_to_come",),
    ),
    Mutant(
        "retention-called-exact",
        "A row whose log lost its beginning while it was read does not call itself exact.",
        "migrate/match/placement.py",
        "self._source.start > question.source_log.start or",
        "self._source.start > question.source_log.end or",
        ("tests/unit/match/test_placement.py::test_a_row_whose_log_lost_its_beginning_while_it_was_read_is_not_exact",),
    ),
    Mutant(
        "look-alikes-sure",
        "A row that rests on records which look alike does not call itself exact.",
        "migrate/match/placement.py",
        "            (Why.LOOK_ALIKES, aligned.is_ambiguous(first)),",
        "            (Why.LOOK_ALIKES, aligned.is_ambiguous(committed)),",
        (
            "tests/unit/match/test_copies.py::test_a_second_copy_beside_a_gap_is_told_from_an_aborted_record_by_the_sync_mm2_began_anew_with",
        ),
    ),
    Mutant(
        "probe-left-out",
        "An owed record without a copy in the window is looked for below it.",
        "migrate/match/matcher.py",
        "            if probed >= target_start:\n                break\n",
        "            if probed >= 0:\n                break\n",
        ("tests/unit/match/test_tail.py::test_c4_a_replay_that_was_stopped_is_no_place_to_start_from_and_not_drained",),
    ),
    Mutant(
        "replay-above-ignored",
        "A window ends at a sync only where the tail shows that no replay stands above.",
        "migrate/match/matcher.py",
        "        return self.anchors.above(committed) if tail.is_plain else None\n",
        "        return self.anchors.above(committed)\n",
        ("tests/unit/match/test_tail.py::test_c4_where_the_syncs_of_the_replay_are_lost",),
    ),
    Mutant(
        "other-distance-above-ignored",
        "A window ends at a sync only where all later ones keep its distance between the logs.",
        "migrate/match/anchors.py",
        "        first = max(bisect_right(self._offsets, committed), self._same_shift_from)\n",
        "        first = bisect_right(self._offsets, committed)\n",
        (
            "tests/unit/match/test_copies.py::test_a_second_copy_beside_a_gap_is_told_from_an_aborted_record_by_the_sync_mm2_began_anew_with",
        ),
    ),
    Mutant(
        "gaps-close-a-window",
        "A window in which not every offset was copied reaches to the ends of the logs.",
        "migrate/match/matcher.py",
        "        leaves_out = source.has_gaps or aligned.without_copy(source.low) > 0\n",
        "        leaves_out = False\n",
        (
            "tests/unit/match/test_copies.py::test_a_second_copy_beside_a_gap_is_told_from_an_aborted_record_by_the_sync_mm2_began_anew_with",
        ),
    ),
    Mutant(
        "bound-one-too-low",
        "No more records are read twice than the row says.",
        "migrate/match/placement.py",
        "            rereads_at_most=rereads + uncopied,\n            missing_on_target=missing,\n",
        "            rereads_at_most=max(0, rereads + uncopied - 1),\n            missing_on_target=missing,\n",
        ("tests/unit/match/test_tail.py::test_c4_a_replay_that_was_stopped_is_no_place_to_start_from_and_not_drained",),
    ),
    Mutant(
        "missing-not-counted",
        "Owed records that have no copy are counted in the row.",
        "migrate/match/placement.py",
        "            missing = max(0, missing - superseded - self._uncopied_from(first))\n",
        "            missing = 0\n",
        (
            "tests/unit/match/test_matcher.py::test_c1_a_target_recreated_whose_sync_was_not_written_does_not_hide_the_record_that_went_on",
        ),
    ),
    Mutant(
        "counting-always-trusted",
        "Below the source's log start counting decides only where nothing else can add up to the number.",
        "migrate/match/placement.py",
        "        if can_count and pair is not None and",
        "        if pair is not None and",
        (
            "tests/unit/match/test_placement.py::test_below_the_log_start_nothing_is_counted_where_a_record_that_is_left_has_no_copy",
        ),
    ),
    Mutant(
        "counted-too-few",
        "Below the source's log start nothing is counted where a copy is lacking.",
        "migrate/match/placement.py",
        "    if len(newest) != next_offset - source_offset:\n        return None\n",
        "    if len(newest) < committed - source_offset + 1:\n        return None\n",
        (
            "tests/unit/match/test_placement.py::test_below_the_log_start_nothing_is_counted_where_a_removed_record_has_no_copy",
        ),
    ),
    Mutant(
        "greater-of-sync-and-time",
        "Of a proven sync and a timestamp the smaller decides (Law 2).",
        "migrate/match/sync_only.py",
        "    offset = min(lowest, guard)\n",
        "    offset = max(lowest, guard)\n",
        (
            "tests/unit/match/test_sync_only.py::test_behind_a_proven_sync_it_stands_where_the_first_owed_records_time_begins_if_that_is_lower",
        ),
    ),
    Mutant(
        "plan-takes-the-greater-guard",
        "A row that records could not place stands at the smaller of its window and its timestamp.",
        "migrate/plan/translate.py",
        "    if guard is not None and guard < placed.target_offset:\n",
        "    if guard is not None and guard > placed.target_offset:\n",
        ("tests/unit/plan/test_translate.py::test_law_2_takes_the_window_where_the_timestamp_lies_above_it",),
    ),
    Mutant(
        "stopped-replay-called-drained",
        "A replay that was stopped midway is not drained.",
        "migrate/match/tail.py",
        "    uncopied = max(unmatched, len(written) - 1 - newest)\n",
        "    uncopied = unmatched\n",
        ("tests/unit/match/test_tail.py::test_c4_where_the_replay_stopped_behind_a_sync_that_still_counts",),
    ),
    Mutant(
        "older-copies-behind-ignored",
        "Copies of older records behind the last one tell of a replay that is under way.",
        "migrate/match/tail.py",
        "    older = _copied_again(logs, i, j + last_known + 1)\n",
        "    older = 0\n",
        ("tests/unit/match/test_tail.py::test_c4_where_the_syncs_of_the_replay_are_lost",),
    ),
    Mutant(
        "drained-by-the-last-but-one",
        "MM2's own position proves a partition drained only from the last record on.",
        "migrate/survey/drain.py",
        "last <= position < end:",
        "last - 1 <= position < end:",
        (
            "tests/unit/survey/test_drain.py::test_mm2s_own_position_on_the_last_offset_is_a_proof_and_one_below_is_none",
        ),
    ),
    Mutant(
        "drained-under-an-open-transaction",
        "A partition with an open transaction is not drained.",
        "migrate/survey/drain.py",
        "        if top > log.end:\n",
        "        if top < log.end:\n",
        (
            "tests/unit/survey/test_drain.py::test_an_open_transaction_on_either_side_is_not_drained_whatever_else_is_known",
        ),
    ),
    Mutant(
        "place-outside-the-log-set",
        "No row is set outside the target's log.",
        "migrate/plan/rows.py",
        "    if not log.start <= placed.target_offset <= log.end:\n",
        "    if not placed.target_offset <= log.end:\n",
        ("tests/unit/plan/test_rows.py::test_no_row_is_set_outside_the_targets_log",),
    ),
    Mutant(
        "rewind-in-silence",
        "A group that stands beyond its planned offset on the target is not set back unasked.",
        "migrate/plan/rows.py",
        "    if prior is not None and prior > placed.target_offset and policies.rewind is not Rewind.SET:\n",
        "    if prior is not None and prior > placed.target_offset and policies.rewind is Rewind.KEEP:\n",
        ("tests/unit/plan/test_rows.py::test_a_group_that_stands_beyond_the_planned_offset_is_the_reviewers_choice",),
    ),
    Mutant(
        "commit-at-zero-has-no-row",
        "Every commit becomes exactly one row.",
        "migrate/plan/decide.py",
        "for item in case.commits.items())",
        "for item in case.commits.items() if item[1] is None or item[1].offset)",
        ("tests/unit/plan/test_build.py::test_a_commit_at_offset_0_is_a_commit",),
    ),
    Mutant(
        "still-to-copy-left-out-of-the-bound",
        "The bound of a row that is not compared counts what MM2 still has to copy below the commit.",
        "migrate/match/sync_only.py",
        "logs.target.end - offset + logs.question.still_to_copy_below(committed)",
        "logs.target.end - offset",
        ("tests/unit/match/test_sync_only.py::test_what_mm2_still_has_to_copy_below_the_commit_is_read_again_too",),
    ),
    Mutant(
        "compacted-checkpoints-are-an-error",
        "Checkpoints that are compacted while they are read are read up to a later end.",
        "migrate/survey/mm2_topics.py",
        "    return persistently(read_once)\n",
        "    return read_once()\n",
        ("tests/unit/survey/test_mm2_topics.py",),
    ),
)
