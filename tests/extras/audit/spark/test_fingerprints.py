"""Two records have the same fingerprint in SQL where they have the same one in `match`, and only there."""

from itertools import product

import pytest

from migrate.extras.audit.records import PAUSE_MS, fingerprinted, paced, pause_ms, summed
from migrate.extras.audit.stretches import Cut
from migrate.match.equality import Equality, fingerprints
from tests.extras.audit.auditlogs import Record
from tests.extras.audit.spark.auditframes import frame

TEXTS = (None, b"", b"a", b"ab")
HEADERS = (
    (),
    (("a", None),),
    (("a", b""),),
    (("a", None), ("b", b"a")),
    (("a", b"b"), ("a", None)),
    (("ab", b"a"),),
    (("b", b"a"), ("a", None)),
)
RECORDS = [
    Record(0, "", time, key, value, headers)
    for time, key, value, headers in product((1_000, 1_001), TEXTS, TEXTS, HEADERS)
]


@pytest.mark.parametrize("equality", Equality)
def test_sql_and_match_agree_on_equal_and_unequal(spark, equality):
    columns = ([getattr(r, name) for r in RECORDS] for name in ("time_ms", "key", "value", "headers"))
    expected = fingerprints(equality, *columns)
    # Of equal records in `match`'s words each class is a partition, where SQL has to find one fingerprint.
    classes = {fingerprint: number for number, fingerprint in enumerate(dict.fromkeys(expected))}
    records = [(classes[each], record) for each, record in zip(expected, RECORDS, strict=True)]
    found = fingerprinted(frame(spark, records), Cut(equality), 7).select("partition", "a", "b").distinct().collect()
    by_word = [{row[0]: row[word] for row in found} for word in ("a", "b")]
    assert len(found) == len(classes) and all(len(set(each.values())) == len(classes) for each in by_word)


def test_another_salt_gives_other_sums_and_another_order_of_records_the_same(spark):
    def sums(records, salt):
        return summed(fingerprinted(frame(spark, [(0, record) for record in records]), Cut(Equality.ALL), salt))

    one = sums(RECORDS[:5], 1)
    assert one == sums(RECORDS[4::-1], 1) != sums(RECORDS[:5], 2)


def test_pauses_add_up_to_the_time_that_a_rate_takes_and_no_record_is_lost_by_them(spark):
    sizes = [1, 9_000, *(500 + n for n in range(1_000))]
    records = [Record(n, "", 1_000, None, bytes(size - 1), (("h", None),)) for n, size in enumerate(sizes)]
    read = frame(spark, [(0, record) for record in records])
    # A pause is worth 1,000 bytes: of these records some make their task pause always, and others one time in two.
    found = read.selectExpr("offset", pause_ms(read, 1_000_000 / PAUSE_MS)).where("pause_ms > 0").collect()
    assert sum(row[1] for row in found) == pytest.approx(PAUSE_MS * sum(sizes) / 1_000, rel=0.01)
    assert {row[1] % PAUSE_MS for row in found} == {0} and len(found) < len(sizes)
    # They lie evenly.
    half = [row[1] for row in found if 400 <= row[0] < 600]
    assert sum(half) == pytest.approx(PAUSE_MS * sum(sizes[400:600]) / 1_000, abs=3 * PAUSE_MS)
    slow = paced(read, 10**12)
    assert slow.columns == [*read.columns, "pause_ms"] and slow.count() == len(sizes)
    assert "sleep" in slow.select("offset")._jdf.queryExecution().optimizedPlan().toString()
