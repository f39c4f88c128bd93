"""A tenant in a process of its own, for the test that kills it: `python killed.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event

from matoolkit.simulation.tenant import Application, SimulatedTenant
from tests.simulation.tenant.client import CLIENT_ID, SECRET

if __name__ == "__main__":
    with SimulatedTenant(folder=Path(sys.argv[1])) as server:
        server.tenant.register(Application(client_id=CLIENT_ID, secrets={SECRET}))
        print(server.url, flush=True)
        Event().wait()
