"""How MirrorMaker 2 is configured, what it calls things, and what it leaves behind."""
