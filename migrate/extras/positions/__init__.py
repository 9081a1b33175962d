"""Positions that jobs keep outside Kafka (docs/positions.md): translated, checked, and kept in a file of their own.

Begin with `plan`: what such a file says, and how it is made. `held` and `reader` read positions where jobs keep them,
`forms` prints them as each job takes them, `verify` looks whether a Spark query went on from there.
"""

SHORT_HELP = "Translate positions that jobs keep outside Kafka: Spark, Flink, a table."
HELP = """Translate the positions of jobs that keep their own offsets: a Spark query, a Flink job, a table of offsets.

No command sets them: `print` says what each job is to be set to, in the form that it takes.
"""
_MODULE = "migrate.extras.positions.commands"
COMMANDS = {
    "plan": (_MODULE, "plan", "Translate positions, check them, and write them to a file."),
    "print": (_MODULE, "print_positions", "Print what each job is to be set to."),
    "verify": (
        "migrate.extras.positions.commands",
        "verify_positions",
        "Compare checkpoints of queries on the target with it.",
    ),
    "sign": (_MODULE, "sign", "Sign a file of positions that you have reviewed."),
}
