"""A class of games as arrays as a world, with its own teacher or another."""

from typing import Any

import numpy as np

from protege.games.own.world.arena import GameFault, Games, World
from protege.games.own.world.spaces import Array
from protege.games.own.world.teacher import asks


def array_world(kind: type[Any], name: str, place: str, title: str, teacher: str = "") -> World:
    """Its own teacher is asked, unless another one is named."""

    def make(games: int) -> Games:
        try:
            found: Games = kind(games)
        except Exception as problem:  # of a user's own code: it could be any
            raise GameFault(
                f"{place}: {kind.__name__}({games}) raised {type(problem).__name__}: {problem}"
            ) from problem
        missing = [name for name in ("reset", "observe", "step") if not callable(getattr(found, name, None))]
        missing += [name for name in ("observation_space", "action_space") if not hasattr(found, name)]
        if missing:
            raise GameFault(f"{place}: {kind.__name__} has no {', '.join(missing)}; docs/your-own-game.md lists all")
        if teacher:
            ask, takes = asks(teacher)

            def advise() -> Array:
                seen = found.observe()
                match takes:
                    case "both":
                        return np.asarray(ask(found, seen))
                    case "env":
                        return np.asarray(ask(found))
                    case "observations":
                        return np.asarray(ask(seen))
                return np.stack([np.asarray(ask(one)) for one in seen])

            found.teacher = advise  # type: ignore[attr-defined]
        return found

    return World(name, place, title, make, bool(teacher) or hasattr(kind, "teacher"))
