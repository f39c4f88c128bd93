"""The command line: one file per command, and `main`, which knows them all without importing them."""
