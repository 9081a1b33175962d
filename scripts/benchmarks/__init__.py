"""Measurements beside something known, in the same run on the same machine."""
