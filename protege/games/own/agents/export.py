"""A pupil as files that need no Protege: an ONNX model and a description of its input and output.

The scale of observations is part of the model: what the game shows goes in as one row of numbers, and the values of the
choices, their logits, or the numbers themselves come out. Nothing is written before the model has given the same as the
pupil does.
"""

import json
import logging
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from protege import ProtegeError
from protege.games.own.agents.networks import ActorCritic
from protege.games.own.agents.players import Pupil, Random, load_pupil, players_of
from protege.games.own.agents.scaling import LEAST, LIMIT
from protege.games.own.world.arena import Arena, World
from protege.learn.rainbow import QNetwork
from protege.runs.files import replacing
from protege.seeds import EVALUATION

PACKAGES: Final = ("onnx", "onnxscript", "onnxruntime")
OPSET: Final = 18  # all that is needed, and runtimes of some age know it
CHECKED: Final = 256  # observations of real episodes
TOLERANCE: Final = 1e-4  # of the largest output


class _Whole(nn.Module):
    """Observations (games, features) -> what the pupil chooses by."""

    def __init__(self, pupil: Pupil):
        super().__init__()
        self.network, sight = pupil.network, pupil.scaling.sight
        plain = sight.is_picture
        self.register_buffer("mean", torch.zeros(()) if plain else torch.from_numpy(pupil.scaling.mean).float())
        factor = 1.0 if plain else 1.0 / np.sqrt(pupil.scaling.variance + LEAST**2)
        self.register_buffer("factor", torch.as_tensor(factor, dtype=torch.float32))
        self.limit = 1e30 if plain else LIMIT

    mean: Tensor
    factor: Tensor

    def forward(self, observation: Tensor) -> Tensor:
        seen = ((observation - self.mean) * self.factor).clamp(-self.limit, self.limit)
        network = self.network
        if isinstance(network, ActorCritic):
            found: Tensor = network.head(network.body(seen))
            if network.moves.kind != "numbers":
                return found
            low, high = (torch.from_numpy(bound) for bound in (network.moves.low, network.moves.high))
            return low + 0.5 * (1.0 + torch.tanh(found)) * (high - low)
        values: Tensor = network(seen)
        return network.expected(values) if isinstance(network, QNetwork) else values


def export(world: World, name: str, out: Path, runs: Path | None = None) -> dict[str, Any]:
    """Write the pupil of a run or checkpoint into the folder `out`; returns what was written and checked."""
    if missing := [package for package in PACKAGES if not find_spec(package)]:
        raise ProtegeError(f'exporting needs {", ".join(missing)}: pip install "protege[export]"')
    path = players_of(world).checkpoint_of(name, runs)
    if path is None:
        raise ProtegeError(f"no pupil named {name!r} to export: use the name of a run or the path of a checkpoint")
    pupil = load_pupil(path, world)
    if isinstance(pupil.network, ActorCritic) and pupil.network.core is not None:
        raise ProtegeError(f"{name} has a memory, and only pupils without one can be exported")
    whole, seen = _Whole(pupil).eval(), _observations(world)
    model = _quietly(lambda: _to_onnx(whole, seen.shape[1]))
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (exported,) = session.run(None, {"observation": seen})
    with torch.inference_mode():
        expected = whole(torch.from_numpy(seen)).numpy()
    difference, largest = float(np.abs(exported - expected).max()), float(np.abs(expected).max())
    if not difference <= TOLERANCE * max(1.0, largest):
        raise ProtegeError(f"the model differs from the pupil by {difference:.2g}: nothing was written")
    sight, moves = world.spaces
    outputs = {"choice": "of each choice, the largest is taken", "choices": "of the choices of each factor in turn"}
    about = {
        "game": world.place, "player": name, "input": sight.names or sight.picture,
        "pixels": "from 0 to 1, channel by channel" if sight.is_picture else None,
        "output": outputs.get(moves.kind, "the numbers of the action"), "sizes": list(moves.sizes) or moves.count,
        "action_space": str(moves.space),
    }  # fmt: skip
    try:
        out.mkdir(parents=True, exist_ok=True)
        files = {"model.onnx": model, "description.json": (json.dumps(about, indent=1) + "\n").encode()}
        for file, content in files.items():
            with replacing(out / file) as draft:
                draft.write_bytes(content)
    except OSError as error:
        raise ProtegeError(f"{out} cannot be written: {error}") from error
    return {"player": name, "model": str(out / "model.onnx"), "bytes": len(model), "difference": difference,
            "observations": len(seen)}  # fmt: skip


def _observations(world: World) -> Any:
    """What random play sees, as the model takes it."""
    arena, player, found = Arena(world, 8, EVALUATION, 1), Random(), []
    try:
        for _ in range(CHECKED // 8):
            seen = arena.observation
            found.append(arena.sight.pixels(seen) if arena.sight.is_picture else seen)
            arena.step(player.act(arena))
    finally:
        arena.close()
    return np.concatenate(found).astype(np.float32)


def _to_onnx(whole: nn.Module, features: int) -> bytes:
    program = torch.onnx.export(
        whole, (torch.zeros(2, features),), dynamo=True, verbose=False, opset_version=OPSET,
        input_names=["observation"], output_names=["output"], dynamic_shapes=({0: torch.export.Dim("games")},),
    )  # fmt: skip
    assert program is not None
    graph = program.model_proto.graph
    # The exporter notes where in which source file of this machine every operation stands.
    for part in (*graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    return bytes(program.model_proto.SerializeToString())


def _quietly(work: Callable[[], bytes]) -> bytes:
    """Without the exporter's remarks about packages that are not needed and about its own future."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work()
    finally:
        logging.disable(before)
