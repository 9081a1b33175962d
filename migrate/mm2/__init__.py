"""What MirrorMaker 2 is told, calls things, and leaves behind."""
