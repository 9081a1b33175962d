"""Clients of the core, a folder each, which the core does not know; `cli.main` names them, and none knows another."""
