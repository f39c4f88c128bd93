"""The worker: what it adds to the bus for each job, and what memory it needs with every place taken.

What the bus costs is taken by itself, 64 jobs at a time as well, and taken away; processor time, so that waiting for
the disk counts for nobody. Each run has a process of its own; `benchmarks.hands` is what happens there.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from benchmarks.engine import SETTINGS, emptied
from benchmarks.hands import CLIENT_ID, CLIENT_SECRET, Assignment, Findings, Task
from benchmarks.report import Measurement, Quantity, Target
from matoolkit.simulation.tenant import TENANT_ID, Application, SimulatedTenant
from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from matoolkit.store.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks import Plan

JOBS, JOBS_OF_TENANT = 20_000, 2_000
OWN_MS = 0.05
"""Of processor time, a job."""
MEMORY_MB = 60
"""Above the imports."""
_ROOT = Path(__file__).parent.parent
_LONGEST_RUN = 900


def worker(plan: Plan) -> Iterator[Measurement]:
    """Everything that is promised of the worker, on each store."""
    for store in plan.stores:
        alone, real = [], []
        for _ in range(plan.repeat):
            alone.append(_run(plan, store, Assignment(Task.BUS, "", JOBS)))
            real.append(_run(plan, store, Assignment(Task.WORKER, "", JOBS)))
        own = [each.cpu - other.cpu for each, other in zip(real, alone, strict=True)]
        memory = Target(MEMORY_MB, quantity=Quantity.MEMORY)
        setting = SETTINGS[store]
        bus = f"worker/{store}/the bus alone"
        yield Measurement(bus, store, setting, JOBS, [each.seconds for each in alone], None)
        yield Measurement(
            f"worker/{store}/no-op jobs",
            store,
            setting,
            JOBS,
            [each.seconds for each in real],
            median(each.peak_mb - each.base_mb for each in real),
            (memory, Target(ratio_to=bus, quantity=Quantity.TIME)),
        )
        target = Target(OWN_MS, quantity=Quantity.TIME)
        yield Measurement(f"worker/{store}/its own share", store, "processor time", JOBS, own, None, (target,))
        found = [_with_tenant(plan, store) for _ in range(plan.repeat)]
        yield Measurement(
            f"worker/{store}/users made in a tenant",
            store,
            setting,
            JOBS_OF_TENANT,
            [each.seconds for each in found],
            median(each.peak_mb - each.base_mb for each in found),
            (memory,),
        )


def _with_tenant(plan: Plan, store: str) -> Findings:
    with SimulatedTenant() as server:
        server.tenant.register(Application(client_id=CLIENT_ID, secrets={CLIENT_SECRET}))
        assignment = Assignment(
            Task.TENANT, "", JOBS_OF_TENANT, tenant_id=TENANT_ID, tenant_url=server.url, ca_file=str(server.ca_file)
        )
        found = _run(plan, store, assignment)
        made = server.tenant.records.count("POST /users", acted=True)
    if made != JOBS_OF_TENANT:
        raise AssertionError(f"{made} of {JOBS_OF_TENANT} users were made")
    return found


_numbers = count(1)


def _run(plan: Plan, store: str, assignment: Assignment) -> Findings:
    """One run on a new database, in a process of its own."""
    file = plan.folder / f"worker-{next(_numbers)}.sqlite"
    url = in_file(file) if store == "sqlite" else emptied(plan.postgresql_url or "")
    database = open_database(url)
    migrate(database)
    database.close()
    process = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.hands",
            msgspec.json.encode(msgspec.structs.replace(assignment, url=str(url))),
        ],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        timeout=_LONGEST_RUN,
        check=True,
    )
    for left in plan.folder.glob(f"{file.name}*"):
        left.unlink()
    found = msgspec.json.decode(process.stdout, type=Findings)
    print(
        f"  {store}, {assignment.task}: {found.seconds:.2f} s, {found.cpu:.2f} s of a processor, "
        f"{found.peak_mb - found.base_mb:.0f} MB",
        file=sys.stderr,
        flush=True,
    )
    return found
