"""Everything that is read before a decision, in the order that is safe."""
