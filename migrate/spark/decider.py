"""Deciding rows in Spark's tasks: the adapter behind `migrate.plan.decide.RowDecider`.

A cluster's executors take over what this process would do row by row, by the same functions, and this process holds
columns only. Groups of which all is usual stay: to send them takes as long as to decide them by columns. The others
travel in parts, each with the facts that it needs and no more: no settings of a cluster, so no secrets. Two waves of
parts are under way at most, whatever the size of the plan.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from migrate.plan.decide import GroupCase, Undecided, decide, deciding_by_columns, rows_by_rules
from migrate.progress import in_background
from migrate.row_table import GroupRows, Known
from migrate.spark.background import Session
from migrate.spark.java_errors import last_line
from migrate.spark.session_settings import is_local
from migrate.spark.shipping import ship_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Fewer rows are decided here before a task has begun.
LEAST_ROWS = 200_000
# A part's rows take some 300 bytes each, here and on its executor, and a wave's pass through the driver's JVM.
ROWS_PER_PART = 20_000
MOST_PARTS, PARTS_PER_CORE = 32, 2


class SparkDecider:
    """Decides many rows with tasks of a Spark cluster; few, and on this machine all, in this process.

    Where `takes` has said that it will, the session has to last until then, and `over` is called afterwards. `failed`
    takes why Spark did not decide rows that it was given: the rows are right all the same, and slower.
    """

    def __init__(
        self, session: Session, over: Callable[[], None], failed: Callable[[str], None], least_rows: int = LEAST_ROWS
    ) -> None:
        self._session = session
        self._over = over
        self._failed = failed
        self._least_rows = least_rows
        self.is_awaited = False

    def takes(self, count: int) -> bool:
        """Return whether so many rows will be decided in tasks, at least `least_rows`."""
        self.is_awaited = count >= self._least_rows and not is_local(self._session().sparkContext.master)
        return self.is_awaited

    def decide(self, asked: Undecided) -> Iterable[GroupRows]:
        """Return each group's rows."""
        return self._in_tasks(asked) if self.is_awaited else decide(asked)

    def _in_tasks(self, asked: Undecided) -> Iterator[GroupRows]:
        try:
            yield from decided_in_tasks(self._session(), asked, self._failed)
        finally:
            self._over()


def decided_in_tasks(
    spark: "SparkSession", asked: Undecided, failed: Callable[[str], None], rows_per_part: int = ROWS_PER_PART
) -> Iterator[GroupRows]:
    """Yield each group's rows: usual ones decided here, all others by Spark, or here where it cannot.

    `failed` is told why it could not.
    """
    ship_package(spark)
    size = min(MOST_PARTS, PARTS_PER_CORE * spark.sparkContext.defaultParallelism)
    known: Known = {}
    before, is_lost = None, False
    for groups in _waves(asked, size * rows_per_part, known):
        parts = list(parts_of(replace(asked, groups=[case for case, rows in groups if rows is None]), rows_per_part))
        # A Spark that has failed is not asked again: each time it may take minutes to say so.
        is_lost = is_lost or (before is not None and before.has_failed())
        wave = _Wave([rows for _, rows in groups], parts, failed, None if is_lost else spark)
        if before is not None:
            yield from before.rows(known)
            is_lost = is_lost or before.has_failed()
        before = wave
    yield from before.rows(known) if before else ()


_Groups = list[tuple[GroupCase, GroupRows | None]]


def _waves(asked: Undecided, most_rows: int, known: Known) -> Iterator[_Groups]:
    """Yield groups in their order, with their rows if usual; about so many rows of others at once."""
    by_columns = deciding_by_columns(asked, known)
    groups: _Groups = []
    count = 0
    for case in asked.groups:
        rows = by_columns(case)
        groups.append((case, rows))
        count += 0 if rows else len(case.commits)
        if count >= most_rows:
            yield groups
            groups, count = [], 0
    if groups:
        yield groups


class _Wave:
    """Groups that are decided together: `usual` has the rows of a group, None where `parts` have it, in their order."""

    def __init__(
        self,
        usual: list[GroupRows | None],
        parts: list[Undecided],
        failed: Callable[[str], None],
        spark: "SparkSession | None",
    ) -> None:
        self._usual = usual
        self._parts = parts
        self._failed = failed
        self._decided: Future[list[list[GroupRows]]] | None = None
        if spark is not None and parts:
            tasks = spark.sparkContext.parallelize(parts, len(parts)).map(_by_rules)
            self._decided = in_background(tasks.collect, "deciding")

    def has_failed(self) -> bool:
        """True if Spark is known to have decided nothing of it."""
        return self._decided is not None and self._decided.done() and self._decided.exception() is not None

    def rows(self, known: Known) -> Iterator[GroupRows]:
        """Yield each group's rows, once Spark has decided them."""
        others = self._others()
        for usual in self._usual:
            yield usual or next(others).shared(known)

    def _others(self) -> Iterator[GroupRows]:
        # All that they are decided by is here: an executor, or a whole Spark, that is lost costs time alone.
        if self._decided is not None:
            if (error := self._decided.exception()) is None:
                return chain.from_iterable(self._decided.result())
            self._failed(_reason(error))
        return chain.from_iterable(map(_by_rules, self._parts))


def _reason(error: BaseException) -> str:
    try:
        return last_line(error)
    except Exception:
        # It asks the JVM, which may have gone since.
        return type(error).__name__


def _by_rules(part: Undecided) -> list[GroupRows]:
    known: Known = {}
    return [rows_by_rules(part, case, known) for case in part.groups]


def parts_of(asked: Undecided, rows: int) -> Iterator[Undecided]:
    """Yield parts of about so many rows, with what each needs; a group is never divided."""
    cases: list[GroupCase] = []
    count = 0
    for case in asked.groups:
        cases.append(case)
        count += len(case.commits)
        if count >= rows:
            yield asked.of_groups(tuple(cases))
            cases, count = [], 0
    if cases:
        yield asked.of_groups(tuple(cases))
