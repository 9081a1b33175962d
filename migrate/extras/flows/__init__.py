"""Several flows planned at once, from the file that `--flow` takes one of (docs/flows.md)."""

SHORT_HELP = "Plan every flow of a flows.yaml at once."
HELP = "Plan every flow of a file: one plan a flow, each reviewed, approved and applied by itself. Changes nothing."
COMMANDS = {"plan": ("migrate.extras.flows.plan", "plan", "Plan every flow of a file, each to a plan of its own.")}
