"""Following: passes that keep the target's offsets fresh until the night, under an approved mandate (docs/follow.md).

Begin with `judge`: what a pass does with a group, and what it never does. `engine` makes one pass, `passes` makes them
again and again, `mandate` is what people approve.
"""

SHORT_HELP = "Keep the target's offsets fresh until the night, under an approved mandate."
HELP = """Keep the target's offsets fresh until the night, so that a failover in the meantime costs minutes.

`plan` writes a mandate, which people approve; `run` does what it allows, pass after pass: nothing without --execute.
"""
COMMANDS = {
    "plan": ("migrate.extras.follow.plan", "plan", "Write a mandate: which groups are followed, how, and until when."),
    "run": ("migrate.extras.follow.run", "run", "Make passes: translate and set every group that has moved on."),
    "status": ("migrate.extras.follow.status", "status", "Show what a mandate allows, and what its newest pass did."),
    "rollback": ("migrate.extras.follow.rollback", "rollback", "Restore what was there before the first pass."),
}
