"""What is due, and who is there: detection, differences, phases, polls and new versions, at intervals."""

from matoolkit.scheduler.gathering import Gathered
from matoolkit.scheduler.held_removals import held_removals, release_held_removals
from matoolkit.scheduler.preview import Preview, preview
from matoolkit.scheduler.scheduler import Question, Scheduler
from matoolkit.scheduler.settings import Settings

__all__ = [
    "Gathered",
    "Preview",
    "Question",
    "Scheduler",
    "Settings",
    "held_removals",
    "preview",
    "release_held_removals",
]
