"""`python -m matoolkit.hosts.probe`: whether the part that runs in this container is well; an image's health check.

Scheduler, orchestrator and worker answer at `HEALTH_CHECK_PORT`, the API and `up` where they listen.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS = 4


def is_well(environment: Mapping[str, str]) -> bool:
    """Whether somebody answers, and does not say that it is unwell. Degraded is an answer too."""
    port = environment.get("HEALTH_CHECK_PORT", "")
    places = [f"{port}/health"] if port else []
    places.append(f"{environment.get('AdminApi__Port') or 8080}/api/health")
    for place in places:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{place}", timeout=_SECONDS):
                return True
        except urllib.error.HTTPError as answer:
            answer.close()
            return False
        except OSError:
            continue  # nobody listens there
    return False


if __name__ == "__main__":
    sys.exit(0 if is_well(os.environ) else 1)
