"""The admin API: what operators and the command line speak to."""

from matoolkit.api.app import create_app
from matoolkit.api.services import Services

__all__ = ["Services", "create_app"]
