"""One file for each engine that is compared, run as a script by the Python of that engine's own environment.

Nothing here but the file of the product itself may import anything that is not in the standard library or of that
engine: `python -m benchmarks.peers.engines.with_huey '<assignment>'`.
"""
