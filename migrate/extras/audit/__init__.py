"""Whether every record of the source has its copy on the target (docs/audit.md).

Begin with `verdict`: what is told of a partition, and what follows. `stretches` says how logs are cut and summed,
`records` reads them with Spark, `pin` says which and up to where, `owed` which part of them a plan's groups are owed,
`judge` what became of each topic; `state` keeps what was read, `run` does it all.
"""

SHORT_HELP = "Show whether every record has its copy on the target."
HELP = """Compare all records of topics with their copies: is everything there?

Changes nothing on any cluster. `run` needs Spark and Java, `show` and `report` neither.
"""
COMMANDS = {
    "run": ("migrate.extras.audit.run", "run", "Read both logs of every topic, and say what has no copy."),
    "show": ("migrate.extras.audit.show", "show", "Show what the last run found."),
    "report": ("migrate.extras.audit.report", "report", "Write what the last run found as one HTML page."),
}
