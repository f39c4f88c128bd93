"""A whole deployment in one process under a virtual clock, with faults drawn from a seed.

A product feature and the test harness: the same seed gives the same history, byte for byte.
"""
