"""What groups a cluster has, where they are, and which of them belong together."""
