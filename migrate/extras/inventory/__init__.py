"""What consumer groups a cluster has, and what both clusters have committed (docs/inventory.md).

Begin with `read`: the groups of one cluster. `listing`, `describe` and `waves` are what is said of them, `compare`
judges what both clusters have committed, `review` makes the tables of the notebook.
"""

GROUP = "groups"
SHORT_HELP = "List, describe and compare groups; pack waves."
HELP = """Look at consumer groups: what is there, how far it lags, what belongs together, what both clusters have.

Changes no group on any cluster. `compare` needs Spark and Java, and so does `list --records` where __consumer_offsets
is long.
"""
_MODULE = "migrate.extras.inventory.commands"
COMMANDS = {
    "list": (_MODULE, "list_groups", "Show every group: kind, state, members, topics, lag, what deserves attention."),
    "describe": (_MODULE, "describe", "Show the partitions of groups, as kafka-consumer-groups --describe does."),
    "compare": (
        "migrate.extras.inventory.compare_command",
        "compare",
        "Compare what groups have committed on both clusters, by translation.",
    ),
    "waves": (_MODULE, "waves", "Pack groups that share topics into waves, and write them as groups files."),
}
