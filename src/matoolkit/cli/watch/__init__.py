"""Following one batch to its end: what is looked at, what has changed since, and how it is shown."""
