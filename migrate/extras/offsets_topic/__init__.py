"""What `__consumer_offsets` holds: exported, and as a history (docs/consumer-offsets.md).

Begin with `export`, and with `chosen`: which records count. `series` makes the history of them.
"""

GROUP = "groups"
SHORT_HELP = "Export __consumer_offsets, show its history."
HELP = (
    "`export` and `history` read __consumer_offsets with Spark, which needs Java, and change nothing on that cluster."
)
COMMANDS = {
    "export": (
        "migrate.extras.offsets_topic.export",
        "export",
        "Export __consumer_offsets: every commit and group as JSON lines, CSV or Parquet.",
    ),
    "history": (
        "migrate.extras.offsets_topic.history",
        "history",
        "Show what groups have committed over time: offset, rate and lag per partition.",
    ),
}
