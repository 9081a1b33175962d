"""What several plans of one run read through: one Spark, and one reading of what they have in common."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from typing import Any

from migrate.cli.plan_wiring import PlanFlow, edges_over, plan_wishes
from migrate.cli.wiring import parse_spark_conf
from migrate.mm2.flow import Flow
from migrate.ports import Progress
from migrate.spark.background import LentSpark, background_spark
from migrate.survey.source_memory import SourceMemory
from migrate.survey.survey import Clusters

EdgesOf = Callable[[Flow, bool, Mapping[str, Any]], AbstractContextManager[Clusters]]
"""Gives what one of several plans reads through: of its flow, whether the source is down, and its options."""


@contextmanager
def edges_of_several_plans(
    flows: Collection[Flow], progress: Progress, options: Mapping[str, Any]
) -> Iterator[EdgesOf]:
    """Yield what gives each of several plans what it reads through, one after another.

    They share one Spark, which is started for what the first of them has to read, and what they read of a source: one
    is the same where its properties are, since with others brokers may show other groups. `options` are `master` and
    `spark_conf`.
    """
    wishes, memories = plan_wishes(flows, progress), defaultdict[frozenset[tuple[str, str]], SourceMemory](SourceMemory)
    with background_spark(options["master"], parse_spark_conf(options["spark_conf"]), wishes) as spark:

        @contextmanager
        def edges_of(flow: Flow, source_down: bool, of_plan: Mapping[str, Any]) -> Iterator[Clusters]:
            lent = LentSpark(spark)
            with closing(PlanFlow.of(flow, source_down, lent, of_plan)) as asked:
                clusters = edges_over(asked, lent, wishes, progress, of_plan)
                yield replace(clusters, memory=memories[frozenset(flow.source.properties.items())])

        yield edges_of
