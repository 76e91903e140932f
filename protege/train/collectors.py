"""Who plays when: in turn with learning, or a thread ahead of it."""

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, Final

from protege.train.session import Experience, Session

STOP: Final = object()  # in place of room for more


class InTurn:
    """Playing and learning take turns, each experience with the newest weights."""

    def __init__(self, session: Session):
        self.session, self.room = session, session.room()

    def next(self) -> Experience:
        """What to learn from next."""
        return self.session.collect(self.room)

    def give_back(self, experience: Experience) -> None:
        """It was learned from."""
        self.room = experience.content

    def stop(self) -> Sequence[Experience]:
        """No more playing; what was played and not taken."""
        return ()


class Ahead:
    """As `InTurn`, but a thread collects the next experience meanwhile, with weights one update round old."""

    def __init__(self, session: Session):
        self.session = session
        self.free: SimpleQueue[Any] = SimpleQueue()
        self.ready: SimpleQueue[Experience | Exception] = SimpleQueue()
        self.thread = threading.Thread(target=self._collect, name="collector", daemon=True)
        self.thread.start()
        for _ in range(2):
            self.free.put(session.room())

    def _collect(self) -> None:
        while (room := self.free.get()) is not STOP:
            try:
                self.ready.put(self.session.collect(room))
            except Exception as problem:  # whatever it is, the loop raises it
                self.ready.put(problem)
                return

    def next(self) -> Experience:
        experience = self.ready.get()
        if isinstance(experience, Exception):
            raise experience
        return experience

    def give_back(self, experience: Experience) -> None:
        self.free.put(experience.content)

    def stop(self) -> Sequence[Experience]:
        self.free.put(STOP)
        self.thread.join()
        left = [self.ready.get() for _ in range(self.ready.qsize())]
        return [experience for experience in left if isinstance(experience, Experience)]
