"""What consumer groups a cluster has, and what both clusters have committed (docs/inventory.md)."""

GROUP = "groups"
SHORT_HELP = "List, describe and compare groups; pack waves."
HELP = """Look at consumer groups: what is there, how far it lags, what belongs together, what both clusters have.

Changes no group on any cluster. `compare` needs Spark and Java, and so does `list --records` where __consumer_offsets
is long.
"""
COMMANDS = {
    "list": (
        "migrate.extras.inventory.commands",
        "list_groups",
        "Show every group: kind, state, members, topics, lag, what deserves attention.",
    ),
    "describe": (
        "migrate.extras.inventory.commands",
        "describe",
        "Show the partitions of groups, as kafka-consumer-groups --describe does.",
    ),
    "compare": (
        "migrate.extras.inventory.compare_command",
        "compare",
        "Compare what groups have committed on both clusters, by translation.",
    ),
    "waves": (
        "migrate.extras.inventory.commands",
        "waves",
        "Pack groups that share topics into waves, and write them as groups files.",
    ),
}
