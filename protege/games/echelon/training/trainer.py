"""How Echelon is learned: the table that the training loop reads."""

from typing import Any, Final

from protege.games.echelon.agents.pupil import KIND
from protege.games.echelon.task.env import TASK_VERSION
from protege.games.echelon.training.config import PRESETS, RENAMED, EchelonConfig, check, ignored
from protege.games.echelon.training.league_agent import admit
from protege.games.echelon.training.metrics import METRICS
from protege.games.echelon.training.session import EchelonSession
from protege.train.session import Trainer


def upgrade(state: dict[str, Any]) -> dict[str, Any]:
    """A checkpoint of a training before sessions had a state of their own."""
    life = list(state.get("league", (0.0, 0, 0)))
    return {
        "step": state["steps"],
        "elapsed_s": state["elapsed_s"],
        "cpu_s": state.get("cpu_s", 0.0),
        "progress": state.get("done", 0.0),
        "best": list(state["best"]),
        "best_of": f"{(state['stage'], life[0])} {state.get('measured_by', '')}",
        "next_evaluation_step": state["next_exam_step"],
        "controls": state["switches"],
        "session": {
            "steps": state["steps"],
            "windows": state["windows"],
            "learner": {name: state[name] for name in ("updates", "optimiser", "order")},
            "stage": [state["stage"], state["stage_began"]],
            "life": life,
            "league": {"life": state.get("life", ""), "draws": state.get("rivals", {})},
            "batches": state["crews"],
        },
    }


TRAINER: Final = Trainer(
    game="echelon",
    unit="agent-step",
    config=EchelonConfig,
    presets=PRESETS,
    learner=lambda config: "ppo",
    metrics=lambda config: [one for one in METRICS if config.league or not one.name.startswith("league_")],
    score="eval_success",
    session=EchelonSession,
    kind=lambda config: KIND,
    task_version=TASK_VERSION,
    check=check,
    admit=admit,
    ignored=ignored,
    upgrade=upgrade,
    renamed=RENAMED,
)
