"""Product code that is broken on purpose, and a runner that shows that the suite fails on each."""
