"""The moment that writes, and the way back."""
