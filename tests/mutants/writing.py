"""How a plan is written, and taken back: drift, journal, apply, rollback."""

from tests.mutants.mutant import Mutant

WRITING = (
    Mutant(
        "offset-zero-not-written",
        "Every row of the plan is written, the one that sets offset 0 included.",
        "migrate/apply/write.py",
        "            commits = {p: r.target_commit for p, r in rows.items() if r.target_commit is not None}\n",
        "            commits = {p: r.target_commit for p, r in rows.items() if r.target_commit and r.target_offset}\n",
        ("tests/unit/apply/test_engine.py::test_an_offset_of_0_is_set_like_any_other",),
    ),
    Mutant(
        "last-partition-not-written",
        "Every partition of a group is written.",
        "migrate/apply/drift.py",
        "    return [row for row in to_write(rows) if not is_done(row, commits, trace)]\n",
        "    return [row for row in to_write(rows) if not is_done(row, commits, trace)][:1]\n",
        ("tests/unit/apply/test_engine.py::test_a_dry_run_assesses_all_and_writes_nothing_not_even_a_journal",),
    ),
    Mutant(
        "skipped-rows-not-reported",
        "Every row of the plan has its line in the report, the skipped ones too.",
        "migrate/apply/row_results.py",
        "    return tuple(map(result, assessment.plan.rows))\n",
        "    return tuple(result(row) for row in assessment.plan.rows if row.decision is not Decision.SKIP)\n",
        ("tests/unit/apply/test_engine.py::test_kept_and_skipped_rows_are_not_written",),
    ),
    Mutant(
        "left-out-ends-in-0",
        "A run that leaves groups out ends in 4.",
        "migrate/apply/engine.py",
        "    return EXIT_DONE if assessment.is_whole else EXIT_PARTLY\n",
        "    return EXIT_DONE\n",
        ("tests/unit/apply/test_engine.py::test_allow_partial_leaves_out_whole_groups_and_exits_4",),
    ),
    Mutant(
        "refused-ends-in-0",
        "A run that writes nothing because something is refused ends in 3.",
        "migrate/apply/engine.py",
        "    if not _may_write(assessment, options.allow_partial):\n        return EXIT_REFUSED\n",
        "    if not _may_write(assessment, options.allow_partial):\n        return EXIT_DONE\n",
        ("tests/unit/apply/test_engine.py::test_a_blocked_group_stops_everything_and_is_named",),
    ),
    Mutant(
        "unknown-ends-in-0",
        "A run with rows that nobody can vouch for ends in 4.",
        "migrate/apply/engine.py",
        "    if statuses & {RowStatus.FAILED, RowStatus.UNKNOWN}:\n",
        "    if statuses & {RowStatus.FAILED}:\n",
        (
            "tests/unit/apply/test_engine.py::test_a_passing_failure_is_tried_again_with_a_fresh_client_until_the_group_timeout",
        ),
    ),
    Mutant(
        "journal-gap-ends-in-0",
        "A run whose journal could not be finished does not end in 0.",
        "migrate/apply/engine.py",
        "        if (trouble or gap) and code == EXIT_DONE:\n",
        "        if trouble and code == EXIT_DONE:\n",
        ("tests/unit/apply/test_apply_refusals.py::test_a_disk_that_fills_after_the_last_write_loses_no_result",),
    ),
    Mutant(
        "exit-code-swallowed",
        "A command ends in the exit code that its error carries.",
        "migrate/cli/console.py",
        "            code = error.exit_code\n",
        "            code = 0\n",
        ("tests/unit/cli/test_options.py::test_wrong_use_exits_2_with_one_paragraph",),
    ),
    Mutant(
        "partial-without-being-asked",
        "Nothing is written while a group is refused, unless --allow-partial says so.",
        "migrate/apply/engine.py",
        "    return not assessment.refusals and (allow_partial or assessment.is_whole)\n",
        "    return not assessment.refusals\n",
        ("tests/unit/apply/test_engine.py::test_a_blocked_group_stops_everything_and_is_named",),
    ),
    Mutant(
        "not-read-back",
        "A row is called set only when it was read back.",
        "migrate/apply/engine.py",
        "    read_back = read_commits(target, read_again, clock, timeout, tell)\n",
        "    planned = assessment.plan.groups()\n"
        "    read_back = {\n"
        "        g: {r.target_partition: c for r in planned[g] if (c := r.target_commit)} for g in read_again\n"
        "    }\n",
        (
            "tests/unit/apply/test_engine.py::test_a_passing_failure_is_tried_again_with_a_fresh_client_until_the_group_timeout",
        ),
    ),
    Mutant(
        "doubt-of-a-rollback-forgotten",
        "What a rollback may still restore is unknown, and has not failed, to an undo plan that fails afterwards.",
        "migrate/apply/engine.py",
        "    earlier = undone.traces(ROLLBACK) if spends is not None else {}\n",
        "    earlier = undone.traces(ROLLBACK) if spends is None else {}\n",
        (
            "tests/unit/apply/test_life_of_a_plan.py::test_what_a_rollback_may_still_restore_is_unknown_and_not_failed_to_an_undo_that_fails",
        ),
    ),
    Mutant(
        "read-back-by-the-writer",
        "It is read back with a fresh client.",
        "migrate/apply/write.py",
        "                admin = admin.renewed()\n                for chunk",
        "                for chunk",
        (
            "tests/unit/apply/test_apply_refusals.py::test_a_client_that_can_not_be_started_again_does_not_hide_what_was_written",
        ),
    ),
    Mutant(
        "read-back-difference-ignored",
        "A row that is read back elsewhere than it was written has failed.",
        "migrate/apply/row_results.py",
        "    if is_as_planned:\n        done = ",
        "    if is_as_planned or is_acknowledged:\n        done = ",
        ("tests/unit/apply/test_engine.py::test_an_offset_that_somebody_overwrote_at_once_is_a_failure",),
    ),
    Mutant(
        "journal-not-synced",
        "What the journal says is on disk before what it speaks of is written.",
        "migrate/apply/journal.py",
        "        try:\n            os.fsync(self._descriptor)\n",
        "        try:\n            os.fstat(self._descriptor)\n",
        ("tests/unit/apply/test_apply_refusals.py::test_a_disk_that_fills_after_the_last_write_loses_no_result",),
    ),
    Mutant(
        "journal-name-not-synced",
        "The journal's name is on disk before the first write.",
        "migrate/apply/journal.py",
        "            sync_folder(self.path.parent)\n",
        "            pass\n",
        (
            "tests/unit/plan/test_companions.py::test_a_run_that_finds_the_journal_there_brings_its_name_to_disk_as_well",
        ),
    ),
    Mutant(
        "backup-not-synced",
        "A disk that has no room for the prior offsets ends the run before an intent is said.",
        "migrate/apply/journal.py",
        '            self.write("backup", group=group, prior=saved)\n        self.sync()\n',
        '            self.write("backup", group=group, prior=saved)\n',
        ("tests/unit/apply/test_apply_refusals.py::test_a_disk_that_is_full_before_the_first_write_stops_there",),
    ),
    Mutant(
        "intent-not-synced",
        "What is about to be written is on disk before it is written.",
        "migrate/apply/journal.py",
        '            self.write("intent", group=group, planned=_places(offsets))\n        self.sync()\n',
        '            self.write("intent", group=group, planned=_places(offsets))\n',
        ("tests/unit/apply/test_engine.py::test_all_that_the_journal_says_is_on_disk_at_every_write",),
    ),
    Mutant(
        "backup-after-the-write",
        "Prior offsets are saved before the first write.",
        "migrate/apply/engine.py",
        """    try:
        journal.backup(
            {group: assessment.target_commits[group] for group in rows},
            {group: [row.target_partition for row in pending] for group, pending in rows.items()},
        )
    except JournalLost as error:
        raise _nothing_written(error) from error
    progress.step(f"writing {len(groups)} groups on {target.side} {target.alias}")
    total, concurrency = len(groups), max(1, min(options.concurrency, MAX_CONCURRENCY))

    def tell(done: int) -> None:
        progress.advance(done, total)

    timeout = options.group_timeout_seconds
    written = GroupWriter(target, journal, clock, timeout, concurrency, tell).write(rows, assessment.target_commits)
""",
        """    progress.step(f"writing {len(groups)} groups on {target.side} {target.alias}")
    total, concurrency = len(groups), max(1, min(options.concurrency, MAX_CONCURRENCY))

    def tell(done: int) -> None:
        progress.advance(done, total)

    timeout = options.group_timeout_seconds
    written = GroupWriter(target, journal, clock, timeout, concurrency, tell).write(rows, assessment.target_commits)
    try:
        journal.backup(
            {group: assessment.target_commits[group] for group in rows},
            {group: [row.target_partition for row in pending] for group, pending in rows.items()},
        )
    except JournalLost as error:
        raise _nothing_written(error) from error
""",
        ("tests/unit/apply/test_engine.py::test_prior_offsets_and_the_intent_are_on_disk_before_the_first_write",),
    ),
    Mutant(
        "newest-backup-counts",
        "A rollback restores what was there before the first run, not between two.",
        "migrate/apply/history.py",
        '            self._prior.setdefault(event["group"], _commits(event["prior"]))\n',
        '            self._prior[event["group"]] = _commits(event["prior"])\n',
        ("tests/unit/apply/test_history.py::test_the_first_backup_of_a_group_counts",),
    ),
    Mutant(
        "intent-not-recorded",
        "The journal says what is about to be written, before it is.",
        "migrate/apply/write.py",
        "self._journal.intend({g: {p: r.target_offset for p, r in rows.items()} for g, rows in chunk.items()})",
        "self._journal.sync()",
        ("tests/unit/apply/test_engine.py::test_prior_offsets_and_the_intent_are_on_disk_before_the_first_write",),
    ),
    Mutant(
        "unknown-noted-as-failed",
        "The journal does not say failed of a write that may have been made.",
        "migrate/apply/journal.py",
        "    status = UNKNOWN if result.outcome_unknown else FAILED\n",
        "    status = FAILED\n",
        ("tests/unit/apply/test_history.py::test_what_may_have_been_written_is_never_forgotten",),
    ),
    Mutant(
        "unknown-codes-taken-for-failed",
        "An error that may arise after the append does not prove that nothing was written.",
        "migrate/write_outcome.py",
        "    return code not in NOT_WRITTEN\n",
        "    return False\n",
        (
            "tests/unit/apply/test_unknown_outcomes.py::test_an_error_that_may_arise_after_the_append_leaves_a_write_unknown_and_a_reading_not",
        ),
    ),
    Mutant(
        "later-failure-settles-the-unknown",
        "A failure for sure does not tell what became of an earlier try.",
        "migrate/apply/write.py",
        "    return replace(answer, message=message, outcome_unknown=True, first_doubt=first)\n",
        "    return replace(answer, message=message, first_doubt=first)\n",
        (
            "tests/unit/apply/test_unknown_outcomes.py::test_a_failure_for_sure_does_not_undo_that_an_earlier_try_may_be_written",
        ),
    ),
    Mutant(
        "lost-answer-taken-for-failed",
        "A client that breaks while it writes leaves an unknown outcome.",
        "migrate/apply/write.py",
        '    return Failure("NO_ANSWER", what, retriable=True, outcome_unknown=True)\n',
        '    return Failure("NO_ANSWER", what, retriable=True)\n',
        ("tests/unit/apply/test_engine.py::test_a_cluster_that_is_gone_ends_the_run_and_every_row_is_told",),
    ),
    Mutant(
        "partition-left-out-taken-for-set",
        "A partition that the cluster's answer leaves out is not taken for set.",
        "migrate/apply/write.py",
        "    return outcomes.get(group, {}).get(partition, _LEFT_OUT) or done\n",
        "    return outcomes.get(group, {}).get(partition) or done\n",
        (
            "tests/unit/apply/test_unknown_outcomes.py::test_a_partition_that_the_answer_leaves_out_is_unknown_and_written_again",
        ),
    ),
    Mutant(
        "no-result-taken-for-not-written",
        "A rollback takes back a row whose write was begun and has no answer in the journal.",
        "migrate/apply/history.py",
        "            results = {**known.results, **dict.fromkeys(planned, UNKNOWN)}\n",
        "            results = {**dict.fromkeys(planned, FAILED), **known.results}\n",
        (
            "tests/unit/apply/test_engine.py::test_what_a_killed_run_had_set_is_read_back_by_the_next_and_then_consumers_may_move_on",
        ),
    ),
    Mutant(
        "colleague-overwritten",
        "What somebody else commits between two tries is not overwritten.",
        "migrate/apply/write.py",
        "                    results[p] = _MOVED\n",
        "                    pass\n",
        (
            "tests/unit/apply/test_unknown_outcomes.py::test_what_somebody_has_committed_between_two_tries_is_not_overwritten",
        ),
    ),
    Mutant(
        "group-deleted-unread",
        "A rollback deletes a group only if it holds nothing but what was judged.",
        "migrate/apply/write.py",
        "any(now[p].offset != (judged[p].offset if p in judged else None) for p in going)",
        "any(p in judged and now[p].offset != judged[p].offset for p in going)",
        (
            "tests/unit/apply/test_engine.py::test_a_group_that_changes_between_the_check_and_the_deletion_is_not_deleted",
        ),
    ),
    Mutant(
        "changed-group-restored-in-part",
        "A rollback leaves all of a group as it is where somebody commits to it before an offset of it is removed.",
        "migrate/apply/write.py",
        "                    answers[group] = dict.fromkeys(left[group], changed)\n",
        "                    answers[group] = dict.fromkeys(rows, changed)\n",
        (
            "tests/unit/apply/test_engine.py::"
            "test_a_group_that_changes_before_a_removal_is_left_as_it_is_with_all_its_rows",
        ),
    ),
    Mutant(
        "drift-of-the-target-commit-ignored",
        "A group whose offset on the target was moved since the plan is refused.",
        "migrate/apply/drift.py",
        "        if (now == row.target_prior and not metadata) or restore:\n",
        "        if row.decision is Decision.SET or (now == row.target_prior and not metadata) or restore:\n",
        ("tests/unit/apply/test_drift.py::test_each_difference_is_drift_and_named",),
    ),
    Mutant(
        "drift-of-metadata-ignored",
        "A group whose commit has other metadata than the plan saw is refused.",
        "migrate/apply/drift.py",
        "    if commit is None or commit.metadata == expected:\n",
        '    if commit is None or commit.metadata == expected or expected == "":\n',
        ("tests/unit/apply/test_drift.py::test_each_difference_is_drift_and_named",),
    ),
    Mutant(
        "drift-of-the-group-state-ignored",
        "A group that has members is not written.",
        "migrate/apply/drift.py",
        "    elif not state.is_stopped:\n        who",
        '    elif state.state == "PreparingRebalance":\n        who',
        ("tests/unit/apply/test_drift.py::test_each_difference_is_drift_and_named",),
    ),
    Mutant(
        "drift-of-the-cluster-id-ignored",
        "A plan is not written to another cluster than it was made for.",
        "migrate/apply/drift.py",
        "        if expected and now.cluster_id != expected\n",
        "        if expected and not now.cluster_id\n",
        ("tests/unit/apply/test_drift.py::test_each_cluster_is_known_by_its_id",),
    ),
    Mutant(
        "drift-of-topic-ids-ignored",
        "A topic that was deleted and created anew refuses the groups that read it.",
        "migrate/apply/drift.py",
        "            if expected and now != expected:\n",
        "            if expected and not now:\n",
        ("tests/unit/apply/test_drift.py::test_each_difference_is_drift_and_named",),
    ),
    Mutant(
        "drift-of-the-source-commit-ignored",
        "A group that has moved on the source since the plan is refused.",
        "migrate/apply/drift.py",
        "        if now != row.source_committed or metadata:\n",
        "        if now is None or metadata:\n",
        ("tests/unit/apply/test_drift.py::test_each_difference_is_drift_and_named",),
    ),
    Mutant(
        "drift-of-log-ends-ignored",
        "Records that were written since the plan refuse the groups that read them.",
        "migrate/apply/drift.py",
        "        if now.end > end and row.source_topic not in grows:\n",
        "        if now.end > end and row.source_topic in grows:\n",
        ("tests/unit/apply/test_drift.py::test_each_difference_is_drift_and_named",),
    ),
    Mutant(
        "kept-groups-not-looked-at",
        "A group that the plan only keeps is read again before it is called as planned.",
        "migrate/apply/assess.py",
        "if group not in blocked and any(compared(rows))}",
        "if group not in blocked and to_write(rows)}",
        ("tests/unit/apply/test_assess.py::test_a_kept_offset_that_expired_since_the_plan_refuses_its_group",),
    ),
    Mutant(
        "kept-rows-not-compared",
        "A row that the plan keeps must hold what it held.",
        "migrate/apply/drift.py",
        "    return (row for row in rows if row.decision in (Decision.SET, Decision.REMOVE, Decision.KEEP))\n",
        "    return (row for row in rows if row.decision in (Decision.SET, Decision.REMOVE))\n",
        ("tests/unit/apply/test_drift.py::test_a_kept_row_that_moved_refuses_its_group",),
    ),
    Mutant(
        "blocks-without-rows-ignored",
        "A block that no row shows is refused by apply.",
        "migrate/apply/assess.py",
        "    open_blocks, source_unseen = plan.blocks_without_rows(), ",
        "    open_blocks, source_unseen = (), ",
        ("tests/unit/apply/test_assess.py::test_a_block_that_no_row_shows_is_refused_and_named_when_passed_over",),
    ),
    Mutant(
        "source-that-does-not-answer-passed-over",
        "Nothing is written while the source does not answer, unless that was chosen.",
        "migrate/apply/assess.py",
        "    if lost and needing:\n",
        "    if lost and not needing:\n",
        ("tests/unit/apply/test_assess.py::test_a_source_that_does_not_answer_refuses_before_any_write",),
    ),
    Mutant(
        "twelve-digits-approve",
        "A plan is approved by 32 digits of its fingerprint or more.",
        "migrate/plan/plan.py",
        "    return len(given) >= MIN_APPROVAL_DIGITS and plan.fingerprint.startswith(given)\n",
        "    return plan.fingerprint[:SHORT_DIGITS] == given[:SHORT_DIGITS]\n",
        ("tests/unit/cli/test_main.py::test_thirty_two_digits_or_more_approve_in_either_case_of_letters",),
    ),
    Mutant(
        "approval-not-compared",
        "A fingerprint of another plan approves nothing.",
        "migrate/cli/apply.py",
        "    if not approves(approval, plan):\n",
        "    if not approval:\n",
        ("tests/unit/cli/test_main.py::test_executing_needs_the_fingerprint_and_the_right_one",),
    ),
    Mutant(
        "signatures-not-counted",
        "A plan that asks for signatures is not applied without them.",
        "migrate/cli/apply.py",
        '    if unsigned is not None and options["execute"]:\n',
        '    if unsigned is not None and not signatures and options["execute"]:\n',
        (
            "tests/unit/apply/test_signatures.py::test_apply_refuses_a_plan_with_too_few_names_before_it_asks_any_cluster",
        ),
    ),
    Mutant(
        "lock-not-taken",
        "Two runs on one plan are kept apart.",
        "migrate/apply/journal.py",
        "            fcntl.flock(descriptor, how | fcntl.LOCK_NB)\n",
        "            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)\n",
        ("tests/unit/apply/test_engine.py::test_a_second_run_at_the_same_time_is_refused",),
    ),
    Mutant(
        "run-between-two-readings-unnoticed",
        "A run that another one overtook writes nothing.",
        "migrate/apply/journal.py",
        "            if expected_events is not None and before.events != expected_events:\n",
        "            if expected_events is not None and before.events < expected_events:\n",
        ("tests/unit/apply/test_engine.py::test_a_rollback_refused_for_another_run_does_not_spend_the_plan",),
    ),
    Mutant(
        "damaged-journal-line-believed",
        "A damaged line of the journal is never read as another offset.",
        "migrate/plan/companions.py",
        "    if line != body + _SEAL + b'%08x\"}' % zlib.crc32(body):\n",
        "    if not body:\n",
        ("tests/unit/apply/test_history.py::test_every_flipped_bit_is_damage_and_never_another_offset",),
    ),
    Mutant(
        "torn-line-kept",
        "A line that a crash tore off is dropped before the next is written.",
        "migrate/apply/journal.py",
        '        os.ftruncate(descriptor, content.rfind(b"\\n") + 1)\n',
        "        os.ftruncate(descriptor, len(content))\n",
        ("tests/unit/apply/test_journal.py::test_every_torn_last_line_is_dropped_and_the_rest_is_kept",),
    ),
    Mutant(
        "journal-of-another-plan-accepted",
        "The journal of another plan tells nothing of this one.",
        "migrate/apply/history.py",
        '            if event["fingerprint"] == fingerprint:\n',
        '            if event["fingerprint"]:\n',
        ("tests/unit/apply/test_history.py::test_the_journal_of_another_plan_is_not_taken",),
    ),
    Mutant(
        "spent-plan-applied-again",
        "A plan that was rolled back is never applied again.",
        "migrate/apply/engine.py",
        "    if command == APPLY and state.is_spent:\n",
        "    if command != APPLY and state.is_spent:\n",
        ("tests/unit/apply/test_engine.py::test_after_a_rollback_the_plan_is_spent",),
    ),
    Mutant(
        "undo-does-not-spend",
        "An undo that is applied spends the plan that it undoes.",
        "migrate/apply/engine.py",
        "            other.spent(undo.fingerprint)\n",
        "            other.sync()\n",
        ("tests/unit/apply/test_engine.py::test_an_undo_plan_applied_as_its_own_plan_spends_the_first_one",),
    ),
    Mutant(
        "stale-undo-accepted",
        "An undo that was made before the apply went on is refused.",
        "migrate/apply/undo.py",
        "    if _digest(state, undo.fingerprint) == header.undoes_digest and settled:\n",
        "    if header.undoes_digest and settled:\n",
        (
            "tests/unit/apply/test_way_back.py::test_an_undo_that_was_saved_after_a_kill_is_refused_once_the_apply_was_finished",
        ),
    ),
    Mutant(
        "undo-trusts-what-the-plan-saw",
        "A rollback restores what was saved before the first write, not what the plan saw.",
        "migrate/apply/undo.py",
        "    before = prior.get(row.target_partition)\n    if before is None:\n",
        "    before = prior.get(row.target_partition)\n    if row.target_prior is None or before is None:\n",
        (
            "tests/unit/apply/test_undo.py::test_metadata_comes_back_with_its_offset_and_what_apply_wrote_is_expected_there",
        ),
    ),
    Mutant(
        "metadata-lost-on-the-way-back",
        "A rollback restores the metadata with the offset.",
        "migrate/apply/undo.py",
        "        target_metadata=before.metadata,\n",
        '        target_metadata="",\n',
        (
            "tests/unit/apply/test_undo.py::test_metadata_comes_back_with_its_offset_and_what_apply_wrote_is_expected_there",
        ),
    ),
    Mutant(
        "rollback-takes-back-a-later-plan",
        "A group that an undo has read back is left alone by the next one.",
        "migrate/apply/undo.py",
        "        if row.group not in done\n",
        "        if row.key not in done\n",
        ("tests/unit/apply/test_way_back.py::test_undoing_twice_leaves_alone_what_a_later_plan_has_set_in_between",),
    ),
    Mutant(
        "unacknowledged-restored-only-if-seen",
        "A write that nobody acknowledged is taken back whatever the target shows.",
        "migrate/apply/undo.py",
        "    if certain:\n        return reason, sentence\n",
        "    if certain or reason:\n        return reason, sentence\n",
        (
            "tests/unit/apply/test_unknown_outcomes.py::test_a_row_that_crashed_before_its_answer_is_restored_although_the_prior_offset_is_read",
        ),
    ),
    Mutant(
        "empty-journal-left-behind",
        "A run that could not even begin its journal leaves none, which would keep a new plan from its place.",
        "migrate/apply/journal.py",
        "            self._take_back_begin(descriptor, size)\n",
        "",
        ("tests/unit/apply/test_journal.py::test_a_begin_that_finds_no_room_leaves_the_journal_as_it_was_or_none",),
    ),
    Mutant(
        "plan-tries-out-in-the-end",
        "That nobody can write the plan is said before two clusters are read for it.",
        "migrate/cli/plan.py",
        "    refuse_out(out)\n",
        "",
        ("tests/unit/cli/test_unwritable.py::test_in_a_working_folder_that_is_gone_what_goes_there_is_refused",),
    ),
)
