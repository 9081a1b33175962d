"""How many tasks a comparison is cut into; what they answer is tested with Spark, in tests/spark."""

from hypothesis import given
from hypothesis import strategies as st

from migrate.spark.comparer import LEAST_PER_SECOND_TASK, LEAST_PER_TASK, MOST_TASKS, TASKS_PER_CORE, task_count

widths = st.integers(0, 10**10)
cores = st.integers(1, 300)


@given(widths, cores)
def test_there_is_a_task_and_never_so_many_that_brokers_drown_in_connections(width, cores):
    assert 1 <= task_count(width, cores) <= min(MOST_TASKS, TASKS_PER_CORE * cores)


@given(widths, cores)
def test_a_core_has_a_second_task_only_where_all_have_much_to_do(width, cores):
    tasks = task_count(width, cores)
    assert tasks <= 1 + width // LEAST_PER_TASK
    assert tasks <= cores or width >= tasks * LEAST_PER_SECOND_TASK


@given(widths, widths, cores)
def test_more_to_read_is_never_fewer_tasks(one, other, cores):
    assert task_count(min(one, other), cores) <= task_count(max(one, other), cores)


def test_two_cores_share_what_is_worth_two_connections_and_have_two_tasks_each_of_much():
    assert [task_count(width, 2) for width in (0, 99_999, 100_000, 1_499_999, 1_500_000, 2_000_000, 10**9)] == [
        1, 1, 2, 2, 3, 4, 4,
    ]  # fmt: skip
