"""The page about the tenant lists the faults and the routes there are."""

from __future__ import annotations

import re
from pathlib import Path

from matoolkit.simulation.tenant import TenantFault, steering

PAGE = (Path(__file__).parents[3] / "docs" / "simulated-tenant.md").read_text()


def test_every_fault_is_described() -> None:
    _, _, rest = PAGE.partition("| fault | ")
    table = rest.partition("\n\n")[0]
    assert re.findall(r"^\| ([a-z][a-z-]+) \|", table, re.MULTILINE) == [str(fault) for fault in TenantFault]


def test_every_route_is_described() -> None:
    source = Path(steering.__file__).read_text()
    routes = re.findall(r'case \("([A-Z]+)", \[(.*?)\]\)', source)
    assert len(routes) >= 15
    for method, parts in routes:
        names = re.findall(r'"([a-z-]+)"', parts)
        assert all(name in PAGE for name in names)
        assert re.search(rf"`{method}\b[^|]*/simulation/{names[0]}|`, `{method} /simulation/{names[0]}", PAGE), parts
