"""Side by side with what a user would pick instead: the same waves, on this product and on its peers.

    python -m benchmarks.peers

`engines/` has a file for each engine, run by the Python of that engine's own environment (`environments.py`, pinned in
`requirements/peers/`). `entries.py` lists who takes part and with what settings; `running.py` runs, kills and weighs;
`recording.py` keeps each single run, so that an interrupted comparison goes on where it was; `standings.py` makes
medians of them, and `publishing.py`, `tables.py` and `picture.py` write `docs/`.
"""
