"""Chains and works through real Spark, with readers of logs in memory: what tasks answer, and what is said before."""

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from migrate.errors import ClusterError, EnvironmentLacks, MigrateError
from migrate.match.compare import TasksHere, compare_records
from migrate.match.equality import Content, Equality
from migrate.match.protocol import Limits, Matched, Unmatched, Why, WhyUnmatched, Work, no_chain
from migrate.model import LogRange, TopicPartition
from migrate.spark.tasks import SparkTasks
from tests.memorylogs import MemoryReader, MemoryReaders, record
from tests.spark.comparescene import NO_LIMITS, Heard, Scene, alone, compare, plain, random_scene
from tests.spark.records import FLOW


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_every_partition_is_answered_as_its_matching_answers_it_alone(spark, seed, held):
    scene = random_scene(seed)
    found = compare(spark, scene, held=held)
    assert found.answers.keys() == {work.source for work in scene.works}
    for work in scene.works:
        question = scene.question(work, found.equalities[work.source.topic])
        assert found.answers[work.source] == alone(scene.readers(), question)
        assert found.answers[work.source].places.keys() == set(work.source_committed)
    assert found.source_bytes >= 1000 and found.target_bytes >= 1000
    here = TasksHere(scene.readers(), partial(scene.chain_of, FLOW))
    without_spark = compare_records(here, scene.works, NO_LIMITS, Heard().listener)
    assert (without_spark.answers, without_spark.equalities) == (found.answers, found.equalities)
    assert without_spark.estimate == found.estimate


@pytest.mark.parametrize("held", [False, True])
def test_a_failback_takes_the_syncs_the_other_way_round(spark, held):
    scene = random_scene(3)
    there = scene.works
    ends = {work.target: work.target_log.end for work in there}
    rnd = random.Random(3)
    scene.works = [
        Work(
            w.target,
            w.source,
            w.target_log,
            w.source_log,
            tuple(rnd.sample(range(ends[w.target] + 1), 1)),
            source_has_copies=True,
        )  # fmt: skip
        for w in there
    ]
    readers = MemoryReaders(MemoryReader(scene.target), MemoryReader(scene.source))
    found = compare(spark, scene, flow=FLOW.reversed(), readers=readers, held=held)
    some_chain = False
    for work in scene.works:
        question = scene.question(work, found.equalities[work.source.topic])
        some_chain |= bool(question.sync_pairs)
        assert found.answers[work.source] == alone(readers, question)
    assert some_chain


def test_partitions_without_a_single_sync_are_matched_all_the_same(spark):
    scene = plain(TopicPartition("t", 0))
    scene.syncs = []
    found = compare(spark, scene)
    assert found.equalities == {"t": Equality.ALL}
    place = found.answers[TopicPartition("t", 0)].places[50]
    assert isinstance(place, Matched) and place.exact and place.target_offset == 50


def test_what_is_kept_on_the_way_is_found_out_per_topic(spark):
    scene = plain(TopicPartition("kept", 0))
    log = {n: record(n, headers=(("h", b"1"),)) for n in range(100)}
    syncs = [(u, u) for u in range(0, 100, 10)]
    scene.add(
        TopicPartition("reheaded", 0),
        log,
        {n: replace(c, headers=(("h", b'"1"'),)) for n, c in log.items()},
        syncs,
        (30,),
    )
    scene.add(TopicPartition("retimed", 0), log, {n: replace(c, timestamp=9_000) for n, c in log.items()}, syncs, (30,))
    garbled = {n: Content(5, b"?", b"?%d" % n, ()) for n in log}
    scene.add(TopicPartition("garbled", 0), log, garbled, syncs, (30, 40))
    found = compare(spark, scene)
    assert found.equalities == {
        "kept": Equality.ALL,
        "reheaded": Equality.WITHOUT_HEADERS,
        "retimed": Equality.WITHOUT_TIMESTAMP,
        "garbled": None,
    }
    # Of a topic that cannot be matched only the first owed records are read, for their timestamps.
    changed = Unmatched(WhyUnmatched.RECORDS_CHANGED, guard_offset=100)
    garbled_answer = found.answers[TopicPartition("garbled", 0)]
    assert garbled_answer.places == {30: changed, 40: changed}
    assert garbled_answer.tail.uncopied is None
    assert garbled_answer.source_read < 20
    for topic in ("reheaded", "retimed"):
        place = found.answers[TopicPartition(topic, 0)].places[30]
        assert isinstance(place, Matched) and place.target_offset == 30


def test_the_estimate_is_said_once_and_a_budget_leaves_out_the_widest(spark):
    scene = Scene()
    lengths = {"small": 10, "medium": 40, "wide": 1600}
    for topic, length in lengths.items():
        log = {n: record(n, headers=(("h", bytes(160)),)) for n in range(length)}
        scene.add(TopicPartition(topic, 0), log, log, [(0, 0)], (0,))
    heard = Heard()
    whole = compare(spark, scene, heard=heard)
    assert [whole.estimate] == heard.estimates
    assert (whole.estimate.partitions, whole.estimate.left_out) == (3, 0)
    assert whole.estimate.source_records == whole.estimate.target_records == sum(lengths.values())
    size = whole.estimate.source_bytes / whole.estimate.source_records
    assert 172 < size < 210

    budget = Limits(1_000_000, whole.estimate.source_bytes - 1)
    cut = compare(spark, scene, budget, heard=heard)
    assert heard.estimates == [whole.estimate, cut.estimate]
    assert (cut.estimate.partitions, cut.estimate.left_out) == (2, 1)
    assert cut.estimate.source_records == 50
    assert max(cut.estimate.source_bytes, cut.estimate.target_bytes) <= budget.fetch_bytes
    # A sync and a timestamp still place what is left out, and the bound says how much of the log lies behind it.
    assert cut.answers[TopicPartition("wide", 0)].places == {0: Matched(0, Why.NOT_ALL_READ, 1600, 0, (0, 0), None)}
    assert heard.advances[-1] == (3, 3)
    assert cut.answers[TopicPartition("small", 0)] == whole.answers[TopicPartition("small", 0)]

    none = compare(spark, scene, Limits(1_000_000, 0), heard=heard)
    assert (none.estimate.partitions, none.estimate.left_out, none.estimate.source_bytes) == (0, 3, 0)
    assert len(none.answers) == 3


def test_where_nothing_is_to_be_compared_a_sync_and_a_timestamp_place_each_commit(spark):
    scene = plain(TopicPartition("t", 0))
    heard = Heard()
    found = compare(spark, scene, Limits(0, None), heard=heard)
    (estimate,) = heard.estimates
    assert (estimate.partitions, estimate.source_records, estimate.target_records, estimate.left_out) == (0, 0, 0, 0)
    answer = found.answers[TopicPartition("t", 0)]
    assert answer.places == {50: Unmatched(WhyUnmatched.NO_MATCH, guard_offset=50, lower=(40, 40))}
    assert answer.tail.uncopied is None
    assert answer.source_read < 5


def test_nothing_to_compare_is_no_work(spark):
    heard = Heard()
    found = compare_records(
        SparkTasks(lambda: spark, lambda: no_chain, Scene().readers()), [], NO_LIMITS, heard.listener
    )
    assert (dict(found.answers), len(heard.estimates)) == ({}, 1)


def test_a_log_that_can_not_be_read_is_an_answer_and_not_an_error(spark):
    scene = plain(TopicPartition("t", 0))
    other = plain(TopicPartition("t", 1))
    scene.add(
        TopicPartition("t", 1), other.source[TopicPartition("t", 1)], other.source[TopicPartition("t", 1)], [], (7,)
    )
    readers = scene.readers()
    code = "TOPIC_AUTHORIZATION_FAILED"
    refused: Mapping[TopicPartition, str] = {TopicPartition("A.t", 1): code}
    found = compare(spark, scene, readers=replace(readers, target=replace(readers.target, unreadable=refused)))
    assert found.answers[TopicPartition("t", 1)].places == {7: Unmatched.not_readable(code)}
    place = found.answers[TopicPartition("t", 0)].places[50]
    assert isinstance(place, Matched) and place.exact


@pytest.mark.parametrize(
    "error", [ClusterError("B did not answer.", "Start it."), EnvironmentLacks("No client.", "Install.")]
)
def test_what_ends_a_task_ends_the_comparing_with_the_same_words(spark, error: MigrateError):
    scene = plain(TopicPartition("t", 0))
    with pytest.raises(type(error)) as raised:
        compare(spark, scene, readers=replace(scene.readers(), error=error))
    assert (raised.value.problem, raised.value.todo) == (error.problem, error.todo)


def test_a_fault_of_a_task_is_one_paragraph_that_names_sparks_log(spark):
    scene = plain(TopicPartition("t", 0))
    with pytest.raises(ClusterError, match=r"Spark could not compare records: .*a bug.*Spark's own log is") as raised:
        compare(spark, scene, readers=replace(scene.readers(), error=ZeroDivisionError("a bug")))
    assert "\n" not in str(raised.value)


def test_ends_of_logs_bound_the_chain(spark):
    scene = plain(TopicPartition("t", 0))
    scene.syncs.append((TopicPartition("t", 0), 500, 10))
    scene.syncs.append((TopicPartition("t", 0), 10, 500))
    found = compare(spark, scene)
    place = found.answers[TopicPartition("t", 0)].places[50]
    assert isinstance(place, Matched) and place.lower == (40, 40)
    assert scene.works[0].source_log == LogRange(0, 200)


@pytest.mark.parametrize("held", [False, True])
def test_by_timestamps_the_source_places_rows_where_records_and_settings_show_that_copies_keep_theirs(spark, held):
    scene = Scene()
    log = {n: Content(100_000 + 100 * n, b"k%d" % n, b"v%d" % n, ()) for n in range(200)}
    changed = {n: replace(content, value=b"?") for n, content in log.items()}
    # Now and then the target's own timestamp is the source's.
    stamped = {n: replace(content, timestamp=content.timestamp + n % 3) for n, content in changed.items()}
    keyless = {n: replace(content, key=None) for n, content in log.items()}
    sources = {"kept": log, "stamped": log, "told": log, "keyless": keyless}
    copies = {"kept": changed, "stamped": stamped, "told": changed, "keyless": keyless}
    for topic, copy in copies.items():
        syncs = [(u, u) for u in range(0, 200, 20)] if topic == "kept" else []
        scene.add(TopicPartition(topic, 0), sources[topic], copy, syncs, (50, 120, 200))
    scene.works = [replace(work, may_keep_timestamps=work.source.topic != "told") for work in scene.works]
    heard = Heard()
    found = compare(spark, scene, replace(NO_LIMITS, by_timestamp=True), heard=heard, held=held)
    places = {place.topic: answer.places for place, answer in found.answers.items()}
    # One millisecond less is asked for, which is still behind the record before.
    assert {g: (place.why, place.target_offset) for g, place in places.pop("kept").items()} == {
        g: (Why.LEAST_TIMESTAMP, g) for g in (50, 120, 200)
    }
    # At the end nothing is owed, whatever timestamps say.
    at_the_end = {topic: of_topic[200] for topic, of_topic in places.items()}
    not_kept = ("stamped", "told", "keyless")
    assert at_the_end == dict.fromkeys(not_kept, Matched(200, Why.LEAST_TIMESTAMP, 0))
    reasons = {topic: {of_topic[g].reason for g in (50, 120)} for topic, of_topic in places.items()}
    assert reasons == dict.fromkeys(not_kept, {WhyUnmatched.TIMESTAMPS_NOT_KEPT})
    assert found.answers[TopicPartition("kept", 0)].tail.uncopied is None
    assert (heard.estimates[0].source_records, heard.estimates[0].target_records) == (150, 0)
