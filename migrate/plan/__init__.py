"""From a survey to a file that people approve."""
