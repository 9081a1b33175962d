"""Named checks, one result per subject. Pure."""
