"""Moves people from one Microsoft 365 tenant to another, in waves, and never loses track of anyone."""

__version__ = "0.1.0"
