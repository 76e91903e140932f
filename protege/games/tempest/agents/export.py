"""A pupil as files that need no Protege: an ONNX model, a description of its input and output, and a README.

The lane map is part of the model, so 195 values go in and 44 action values come out. Nothing is written before the
model has given the same values as the pupil, in torch and as it plays, on frames of real games.
"""

import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from protege import ProtegeError
from protege.games.tempest.agents.network import Floats, LaneMap, Pupil
from protege.games.tempest.agents.players import CHAMPIONS, checkpoint_of
from protege.games.tempest.agents.rainbow import RainbowPupil, load_pupil, upgraded_shape
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import Games, starts
from protege.runs import checkpoints
from protege.runs.files import replacing
from protege.runs.metrics import near
from protege.runs.run import list_runs

MODEL: Final = "model.onnx"
DESCRIPTION: Final = "description.json"
README: Final = "README.md"
INPUT, OUTPUT = "observation", "values"
PACKAGES: Final = ("onnx", "onnxscript", "onnxruntime")
OPSET: Final = 18  # all that is needed, and runtimes of some age know it

CHECKED_GAMES: Final = 64
CHECKED_FRAMES: Final = 320
CHECKED_EVERY: Final = 10  # neighbouring frames are much alike
TOLERANCE: Final = 1e-4  # of the largest action value: far above rounding, far below what a wrong model shows

_EXAMPLE: Final = f"""\
import json
import numpy as np
import onnxruntime

about = json.load(open("{DESCRIPTION}", encoding="utf-8"))
model = onnxruntime.InferenceSession("{MODEL}")
{INPUT} = np.zeros((1, {layout.VALUES}), np.float32)  # a row for each game; {DESCRIPTION} names the columns
({OUTPUT},) = model.run(None, {{"{INPUT}": {INPUT}}})
for best in {OUTPUT}.argmax(1):
    print(about["output"]["actions"][best])  # what to press: fire, zap, spinner
"""


class ExportError(ProtegeError):
    """A pupil that is not there, a folder that cannot be written, or a model that is not the pupil."""


def export(name: str, out: Path, runs: Path | None = None) -> dict[str, Any]:
    """Write the pupil of a run, checkpoint or champion into the folder `out`; returns what was written and checked."""
    if missing := [package for package in PACKAGES if not find_spec(package)]:
        raise ExportError(f'exporting needs {", ".join(missing)}: pip install "protege[export]"')
    path = checkpoint_of(name, runs)
    if path is None:
        known = [*CHAMPIONS, *(run.name for run in list_runs(runs))]
        raise ExportError(
            f"no pupil named {name!r} to export: use {' or '.join(CHAMPIONS)}, the name of a run that learned Tempest, "
            f"or the path of a checkpoint{near(name, known)}"
        )
    pupil = load_pupil(path)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"{out} cannot be used as a folder to write into: {error.strerror}") from error
    if not os.access(out, os.W_OK):
        raise ExportError(f"{out} cannot be written by you: choose another folder")
    observation = _observations(pupil)
    played = pupil.values(observation)
    if not np.isfinite(played).all():
        raise ExportError(f"the pupil in {path} gives values that are no numbers: its training went wrong, use another")
    whole = (_WholeRainbow(pupil) if isinstance(pupil, RainbowPupil) else _Whole(pupil)).eval()
    model = _to_onnx(whole)
    check = _check(model, whole, observation, played)
    about = _describe(name, checkpoints.load(path), check)
    description = (json.dumps(about, indent=1, allow_nan=False) + "\n").encode()
    try:
        for file, content in ((MODEL, model), (DESCRIPTION, description), (README, _readme(about).encode())):
            with replacing(out / file) as draft:
                draft.write_bytes(content)
    except OSError as error:
        raise ExportError(f"{out} cannot be written: {error}") from error
    return {"player": name, "model": str(out / MODEL), "bytes": len(model), **check}


class _Whole(nn.Module):
    """Observations (games, 195) -> action values (games, 44): everything the pupil does, in torch."""

    def __init__(self, pupil: Pupil):
        super().__init__()
        self.lane_map = LaneMap()
        self.network = pupil.network
        seen = torch.ones(layout.VALUES, dtype=torch.bool)
        seen[list(layout.HIDDEN)] = not pupil.visible_only
        self.register_buffer("seen", seen, persistent=False)

    seen: Tensor

    def forward(self, observation: Tensor) -> Tensor:
        # The hidden values reach the network unchanged or not at all, so hiding them before the map is the same.
        values: Tensor = self.network(self.lane_map(torch.where(self.seen, observation, 0.0)))
        return values


class _WholeRainbow(nn.Module):
    """The same for a pupil with a distribution for each action: what comes out is the mean of each."""

    def __init__(self, pupil: RainbowPupil):
        super().__init__()
        self.network = pupil.network

    def forward(self, observation: Tensor) -> Tensor:
        return self.network.expected(self.network(observation))


def _to_onnx(whole: nn.Module) -> bytes:
    with _quiet():
        program = torch.onnx.export(
            whole, (torch.zeros(2, layout.VALUES),), dynamo=True, verbose=False, opset_version=OPSET,
            input_names=[INPUT], output_names=[OUTPUT], dynamic_shapes=({0: torch.export.Dim("games")},),
        )  # fmt: skip
        assert program is not None
        model = program.model_proto
    graph = model.graph
    # The exporter notes where in which source file of this machine every operation stands.
    for part in (*graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    return model.SerializeToString()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's remarks about packages that are not needed and about its own future."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _check(model: bytes, whole: nn.Module, observation: Floats, played: Floats) -> dict[str, Any]:
    """Compare the model with the pupil in torch and as it plays; raises unless they differ by rounding alone."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (exported,) = session.run(None, {INPUT: observation})
    alone = np.concatenate([session.run(None, {INPUT: row[None]})[0] for row in observation[:8]])  # any number of games
    with torch.inference_mode():
        in_torch = whole(torch.from_numpy(observation)).numpy()
    differences = {
        "difference_torch": float(np.abs(exported - in_torch).max()),
        "difference_played": float(np.abs(exported - played).max()),
        "difference_alone": float(np.abs(exported[:8] - alone).max()),
    }
    largest = float(np.abs(played).max())
    limit = TOLERANCE * max(1.0, largest)
    if not all(difference <= limit for difference in differences.values()):  # also where one is not a number
        found = ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in differences.items())
        raise ExportError(
            f"the ONNX model is not the pupil, so nothing was written: on {len(observation):,} frames {found}, where "
            f"{limit:.3g} is allowed; try other versions of torch, {' and '.join(PACKAGES)}"
        )
    # Moves may differ only where the two best values are as good as equal: the limit above sees to that.
    same = int((exported.argmax(1) == played.argmax(1)).sum())
    return {"frames": len(observation), **differences, "largest_value": largest, "same_moves": same}


def _observations(pupil: Pupil | RainbowPupil) -> Floats:
    """Frames of games from low to high levels, half of them played by the pupil and half by the teacher."""
    levels = np.linspace(1, 99, CHECKED_GAMES).round().astype(int).tolist()
    games = Games(starts(CHECKED_GAMES, seed=1, level=levels))
    seen = []
    for frame in range(CHECKED_FRAMES):
        frames = games.frames
        if frame % CHECKED_EVERY == 0:
            seen.append(frames.observation[~frames.over])
        commands = frames.advice.copy()
        commands[::2] = ACTIONS[pupil.act(frames)[::2]]
        games.step(commands)
    return np.concatenate(seen)


def _describe(name: str, saved: checkpoints.Checkpoint, check: Mapping[str, Any]) -> dict[str, Any]:
    state = saved.state
    scores = ("score_mean", "score_mean_low", "score_mean_high", "points_per_life", "level_mean")
    shape = upgraded_shape(state["shape"]) if "shape" in state else state
    values = [
        {"index": i, "name": value, "low": -(i in layout.SIGNED), "high": 1, "hidden": i in layout.HIDDEN}
        for i, value in enumerate(layout.NAMES)
    ]
    actions = [
        dict(zip(("index", "fire", "zap", "spinner"), (i, *action))) for i, action in enumerate(ACTIONS.tolist())
    ]
    return {
        "game": "tempest",
        "task_version": saved.task_version,
        "source": {
            "player": name if name != str(saved.path) else saved.path.name,  # where it lies is nobody's business
            "checkpoint": saved.path.name, "saved": saved.saved, "protege": saved.protege, "commit": saved.commit,
            "frames": state.get("frames"),
            "network": shape.get("network") or {"widths": list(state["widths"])},
            "visible_only": shape["visible_only"],
        },
        "scores": {key: state[key] for key in scores if key in state},
        "input": {"name": INPUT, "type": "float32", "shape": ["games", layout.VALUES], "values": values},
        "output": {
            "name": OUTPUT, "type": "float32", "shape": ["games", len(ACTIONS)],
            "meaning": "the reward each action is expected to lead to; the pupil takes the highest", "actions": actions,
        },
        "check": dict(check),
    }  # fmt: skip


def _readme(about: Mapping[str, Any]) -> str:
    source, check = about["source"], about["check"]
    trained = f", trained for {source['frames']:,} frames" if source["frames"] else ""
    ignored = "\nIt ignores the 16 hidden values, which no player can see." if source["visible_only"] else ""
    difference = max(check["difference_torch"], check["difference_played"])
    scores = "".join(f"- {key.replace('_', ' ')}: {value:,.0f}\n" for key, value in about["scores"].items())
    measured = f"\nMeasured in training:\n\n{scores}" if scores else ""
    return f"""# {source["player"]}, a Tempest player

`{MODEL}` takes the {layout.VALUES} values of a Tempest frame and says how good each of {len(ACTIONS)} moves is.
`{DESCRIPTION}` names the values and the moves; Protege's docs/tempest.md explains them.{ignored}

```python
{_EXAMPLE}```

From `{source["checkpoint"]}`{trained}, task version {about["task_version"]}, Protege {source["protege"]}.
{measured}
Checked on {check["frames"]:,} frames of real games against the original: the largest difference of a value is
{difference:.1e}, and the best move is the same in {check["same_moves"]:,}.
"""
