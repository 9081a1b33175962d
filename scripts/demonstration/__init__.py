"""The demo: a cutover between two real clusters, told step by step, and judged by counting records."""
