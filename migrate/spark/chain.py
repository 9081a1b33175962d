"""Law 1 of docs/translation.md and the window around a committed offset, in Spark SQL.

The same as `chain` and `window` in `migrate.mm2.chain`, at the size of a whole topic: both are linear passes over
one sorted shuffle each, never a join by range. Frames name a partition by the raw key of its syncs.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NO_LINK = "cast(null as struct<position: bigint, source_offset: bigint, target_offset: bigint>)"
_LATER = "over (partition by key order by position desc rows between unbounded preceding and 1 preceding)"


def inside(syncs: "DataFrame", ends: "DataFrame") -> "DataFrame":
    """Return the syncs of the partitions in `ends` that lie below both log ends.

    `syncs`: key, position, source_offset, target_offset. `ends`: key, source_end, target_end; a NULL end is
    unknown and filters nothing.
    """
    from pyspark.sql.functions import broadcast

    return (
        syncs.join(broadcast(ends), "key")
        .where(
            "source_offset < coalesce(source_end, 9223372036854775807)"
            " and target_offset < coalesce(target_end, 9223372036854775807)"
        )
        .drop("source_end", "target_end")
    )


def links(syncs: "DataFrame") -> "DataFrame":
    """Return the syncs that no later one contradicts (Law 1): two suffix minima in one window.

    Takes and returns key, position, source_offset, target_offset.
    """
    return (
        syncs.selectExpr(
            "*",
            f"min(source_offset) {_LATER} as least_source",
            f"min(target_offset) {_LATER} as least_target",
        )
        .where("least_source is null or (source_offset < least_source and target_offset < least_target)")
        .drop("least_source", "least_target")
    )


def windows(chain: "DataFrame", commits: "DataFrame") -> "DataFrame":
    """Return the chain's syncs on either side of each commit.

    `chain` as `links` returns it; `commits`: key, id, source_committed. The result has one row per commit: id,
    lower_position, lower_source, lower_target, upper_position, upper_source, upper_target, all NULL on a side
    where the chain has no sync.
    """
    link = "struct(position, source_offset, target_offset)"
    marked = chain.selectExpr("key", "cast(null as bigint) as id", "source_offset as place", f"{link} as link")
    asked = commits.selectExpr("key", "id", "source_committed as place", f"{_NO_LINK} as link")
    # Of a sync and a commit at the same place, the sync comes first: it is the lower end, the one after it the upper.
    order = "partition by key order by place, id nulls first"
    both = marked.unionByName(asked).selectExpr(
        "id",
        f"last_value(link) ignore nulls over ({order} rows between unbounded preceding and current row) as lower",
        f"lead(link) ignore nulls over ({order}) as upper",
    )
    return both.where("id is not null").selectExpr(
        "id",
        "lower.position as lower_position",
        "lower.source_offset as lower_source",
        "lower.target_offset as lower_target",
        "upper.position as upper_position",
        "upper.source_offset as upper_source",
        "upper.target_offset as upper_target",
    )
