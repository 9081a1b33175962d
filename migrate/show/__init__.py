"""Plans and results as text, JSON, CSV, HTML, and tables for notebooks."""
