"""A frozen copy of the pupil, measured in a thread beside its training."""

import threading
from collections.abc import Hashable

from protege.train.session import Cancelled, Result, Snapshot


class Evaluation(threading.Thread):
    """Measures a snapshot; whatever goes wrong is raised where the result is asked for."""

    def __init__(self, snapshot: Snapshot, phase: Hashable, step: int):
        super().__init__(name="evaluation", daemon=True)
        self.snapshot, self.phase, self.step = snapshot, phase, step
        self.cancelled = threading.Event()
        self.found: Result | Exception
        self.start()

    def run(self) -> None:
        try:
            self.found = self.snapshot.evaluate(self.cancelled)
        except Exception as problem:
            self.found = problem

    def result(self) -> Result:
        """Wait for the end."""
        self.join()
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def cancel(self) -> Exception | None:
        """Give up. A result is of no interest any more; an error is a bug that somebody should see."""
        self.cancelled.set()
        self.join()
        return self.found if isinstance(self.found, Exception) and not isinstance(self.found, Cancelled) else None
