"""What is told of groups over time."""

from tests.mutants.mutant import Mutant

ENDS, HISTORY = "tests/unit/kafka/test_log_ends.py", "tests/unit/survey/test_commit_history.py"

TELLING_HISTORY = (
    Mutant(
        "history-makes-up-a-lag-over-records-that-are-gone",
        "Where retention has taken the records of a time, the log's end at that time is not visible.",
        "migrate/kafka/log_times.py",
        "    if answer <= log.start and log.start > 0:\n        return RECORDS_GONE\n",
        "",
        (ENDS,),
    ),
    Mutant(
        "history-takes-a-silent-leader-for-a-log-without-later-records",
        "An answer of -1 is no proof that no record is later.",
        "migrate/kafka/log_times.py",
        "        return log.end if pair[1] > last else _NOT_FOUND\n",
        "        return log.end\n",
        (ENDS,),
    ),
    Mutant(
        "history-counts-what-came-after-the-pin",
        "A record that was appended after the pin does not move an end.",
        "migrate/kafka/log_times.py",
        "    return min(answer, log.end)\n",
        "    return answer\n",
        (ENDS,),
    ),
    Mutant(
        "history-whole-though-ends-were-not-told",
        "A history whose log ends could not be read is not whole: the exit code is 1.",
        "migrate/survey/commit_history.py",
        "not counted.lost and not self.lacks_ends",
        "not counted.lost",
        (HISTORY,),
    ),
    Mutant(
        "history-bucket-under-way-ends-in-the-future",
        "The newest bucket ends at --until or now, or its rate would be spread over time that has not been.",
        "migrate/survey/commit_history.py",
        "return self.now_ms if self.until_ms is None else min(self.now_ms, self.until_ms)",
        "return self.now_ms if self.until_ms is None else self.until_ms",
        (HISTORY,),
    ),
    Mutant(
        "history-answers-minus-1-as-an-end",
        "A silent leader's -1 is no end of a log: where its newest record is not told, that end is not visible.",
        "migrate/kafka/log_times.py",
        "        if isinstance(last, Failure):\n            return last\n",
        "        if isinstance(last, Failure):\n            return log.end\n",
        ("tests/unit/kafka/test_log_ends.py",),
    ),
    Mutant(
        "history-lag-shown-as-certain",
        "A lag is marked as the estimate that it is.",
        "migrate/show/offsets_export.py",
        'none if lag is None else f"~{lag}"',
        'none if lag is None else f"{lag}"',
        ("tests/unit/show/test_commit_history.py",),
    ),
    Mutant(
        "open-transactions-not-waited-for",
        "A transaction that is open at the pin is waited for, by exports and histories.",
        "migrate/cli/export.py",
        "    return past_open_transactions(admin, pin, clock)\n",
        "    return pin\n",
        ("tests/unit/cli/test_export.py",),
    ),
    Mutant(
        "history-silent-over-rows-not-shown",
        "A table says how many rows it does not show.",
        "migrate/show/offsets_export.py",
        "    if told.rows > len(rows):\n",
        "    if told.rows < len(rows):\n",
        ("tests/unit/show/test_commit_history.py",),
    ),
)
