"""Both clusters of a flow, MM2's topics, and a Spark or a JVM beside them: who makes clients, and who ends them.

A session ends all that it started when it is left, also where the command fails. Heavy libraries are imported when
something of theirs is first made, and nothing is opened before it is first asked; only a Spark, which takes seconds to
start, begins to when its session is entered. Begin with `clusters`; `plan` and `status` are what the
commands of these names read through.
"""
