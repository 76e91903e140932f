"""The lanes-and-enemies network against the same layers written plainly; what it attends to; pupils in files."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from protege.games.tempest.agents import network as lane_map_network
from protege.games.tempest.agents.attention import Attention, TokenEncoder, attention_report
from protege.games.tempest.agents.players import find_player
from protege.games.tempest.agents.rainbow import (
    CHECKPOINT_KIND,
    NetworkConfig,
    RainbowPupil,
    build_network,
    load_pupil,
    shape_of,
)
from protege.games.tempest.page.live import WatchedPlayer
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.actions import ACTIONS, FACTORS
from protege.games.tempest.task.env import TASK_VERSION, Games, starts
from protege.learn.rainbow import RainbowConfig
from protege.learn.state import StateMismatch, named_weights
from protege.runs import checkpoints
from protege.runs.checkpoints import CheckpointMismatch

INDEX = {name: index for index, name in enumerate(layout.NAMES)}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "narrow": {"widths": (64, 64), "stream_width": 32},
    "deep": {"widths": (384, 384, 384)},
    "no dueling": {"dueling": False},
    "no layer norm": {"layer_norm": False},
    "self-attention": {"self_attention": True},
    "separate heads": {"separate_heads": True},
    "visible only": {"visible_only": True},
}


PUBLISHED: dict[str, Any] = {"network": "published", "widths": (384, 384), "stream_width": 192, "separate_heads": False}


def published(*, visible_only: bool = False, **options: Any) -> dict[str, Any]:
    """The published network's shape, with some options changed."""
    return shape_of(NetworkConfig(**(PUBLISHED | options)), RainbowConfig(), visible_only)


def make(seed: int = 1, **options: Any) -> Any:
    torch.manual_seed(seed)
    return build_network(published(**options))


def trained(**options: Any) -> Any:
    """A network none of whose weights is where it began, so that no term is 0 or 1 by chance."""
    network = make(**options)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return network


@pytest.fixture(scope="module")
def played():
    """Observations of games that the teacher plays, from open and closed tubes."""
    levels = [*range(1, 65)]
    games = Games(starts(len(levels), seed=11, level=levels))
    seen = []
    for frame in range(300):
        if frame % 60 == 10:
            seen.append(games.frames.observation[~games.frames.over])
        games.step(games.frames.advice)
    observation = np.concatenate(seen)
    assert (observation[:, layout.ENEMY_DEPTHS] == 0).all(1).any(), "some frames without an enemy"
    assert (observation[:, layout.ENEMY_DEPTHS] > 0).sum(1).max() == 7
    return observation


# --- the plain twin ---------------------------------------------------------------------------------------------------


def tokens_of(values: np.ndarray) -> tuple[list[list[float]], list[list[float]], list[bool]]:
    """Lane tokens, enemy tokens nearest first, and which of these are empty; from what the features mean."""
    seen = dict(zip(layout.NAMES, values.tolist(), strict=True))
    own = min(15, max(0, round(15 * seen["player_position"])))
    lanes = [
        [
            seen[f"spike_height_{lane}"], seen[f"tube_angle_{lane}"], float(lane == own),
            math.sin(2 * math.pi * lane / 16), math.cos(2 * math.pi * lane / 16),
        ]
        for lane in range(16)
    ]  # fmt: skip
    enemies = []
    fields = "type segment_increasing between_segments moving_away can_shoot split_kind rel_segment depth".split()
    for slot in range(7):
        about = [seen[f"enemy_{slot}_{field}"] for field in [*fields, "rim_rel_segment"]]
        about += [seen[f"top_rail_{slot}_rel_segment"], seen[f"enemy_{slot}_delta_segment"]]
        about.append(seen[f"enemy_{slot}_delta_depth"])
        place = (15 * seen["player_position"] + 15 * seen[f"enemy_{slot}_rel_segment"]) % 16 / 16
        enemies.append([*about, math.sin(2 * math.pi * place), math.cos(2 * math.pi * place)])
    enemies.sort(key=lambda token: token[7] if token[7] >= 1e-6 else math.inf)
    return lanes, enemies, [token[7] < 1e-6 for token in enemies]


def attention_of(queries_keys_values: nn.Linear, output: nn.Linear) -> Any:
    """Torch's own attention with the weights of ours."""
    attention: Any = nn.MultiheadAttention(128, 8, batch_first=True)
    attention.in_proj_weight, attention.in_proj_bias = queries_keys_values.weight, queries_keys_values.bias
    attention.out_proj = output
    return attention


def plainly(network: Any, observation: np.ndarray, visible_only=False) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits and the attention weights, computed step by step as the layers are described."""
    found = [tokens_of(values) for values in observation]
    lanes, enemies = (torch.tensor([tokens[i] for tokens in found]) for i in (0, 1))
    empty = torch.tensor([tokens[2] for tokens in found])
    empty[empty.all(1)] = False
    encoder = network.body.encoder
    lanes = encoder.lanes.norm(encoder.lanes.linear(lanes))
    enemies = encoder.enemies.norm(encoder.enemies.linear(enemies))
    if hasattr(encoder, "crowd_input"):
        among = attention_of(encoder.crowd_input, encoder.crowd_output)
        enemies = encoder.crowd_norm(enemies + among(enemies, enemies, enemies, key_padding_mask=empty)[0])
    attention = attention_of(encoder.input, encoder.output)
    seen, weights = attention(lanes, enemies, enemies, key_padding_mask=empty, average_attn_weights=False)
    summary = encoder.norm(lanes + seen).mean(1)
    values = torch.from_numpy(observation.copy())
    values[:, list(layout.HIDDEN)] *= 0.0 if visible_only else 1.0
    features = network.body.trunk(torch.cat([values, summary], 1))
    head = network.head
    advantage = head.advantage(head.hidden(features))
    if len(head.factors) == 2:
        buttons, spinner = advantage.view(-1, 15, 51).split((4, 11), 1)
        advantage = torch.stack([buttons[:, a // 11] + spinner[:, a % 11] for a in range(44)], 1)
    advantage = advantage.view(-1, 44, 51)
    if head.value is not None:
        advantage = head.value(features)[:, None] + advantage - advantage.mean(1, keepdim=True)
    return advantage, weights


@pytest.mark.parametrize("name", OPTIONS)
def test_the_network_computes_what_its_layers_say(name, played):
    options = OPTIONS[name]
    network, observation = trained(**options), played[::4]
    expected, _ = plainly(network, observation, options.get("visible_only", False))
    found = network(torch.from_numpy(observation))
    assert found.shape == (len(observation), 44, 51)
    scale = expected.abs().max()
    assert (found - expected).abs().max() < 1e-5 * scale
    assert (network.frozen()(torch.from_numpy(observation)) - expected).abs().max() < 1e-5 * scale


@pytest.mark.parametrize("name", ["default", "self-attention"])
def test_gradients_are_those_of_the_layers_written_plainly(name, played):
    network, observation = trained(**OPTIONS[name]), played[::4]
    parameters = dict(network.named_parameters())
    target = torch.randn(len(observation), 44, 51)
    expected = torch.autograd.grad((plainly(network, observation)[0] * target).sum(), list(parameters.values()))
    found = torch.autograd.grad((network(torch.from_numpy(observation)) * target).sum(), list(parameters.values()))
    for parameter, one, other in zip(parameters, found, expected, strict=True):
        assert (one - other).abs().max() <= 1e-4 * max(1.0, other.abs().max().item()), parameter


# --- sizes and beginnings ---------------------------------------------------------------------------------------------


def test_the_default_network_has_the_published_layers():
    network = make()
    layers = {
        "body.encoder.lanes": 768 + 256, "body.encoder.enemies": 1_920 + 256,
        "body.encoder.input": 49_536, "body.encoder.output": 16_512, "body.encoder.norm": 256,
        "body.trunk": 125_184 + 148_608, "head.value": 83_763, "head.hidden": 73_920, "head.advantage": 433_092,
    }  # fmt: skip
    for name, size in layers.items():
        assert sum(p.numel() for p in network.get_submodule(name).parameters()) == size, name
    assert sum(p.numel() for p in network.parameters()) == sum(layers.values()) == 934_071
    assert network.support.tolist() == [-100 + 4 * i for i in range(51)]


def test_options_change_the_layers_they_name():
    def size(**options):
        return sum(p.numel() for p in make(**options).parameters())

    assert size(separate_heads=True) == 934_071 - (44 - 15) * 51 * 193
    assert size(self_attention=True) == 934_071 + 66_048 + 256
    assert size(dueling=False) == 934_071 - 83_763
    assert size(layer_norm=False) == 934_071 - 2 * 768
    assert size(widths=(384, 384, 384)) == 934_071 + 148_608
    assert size(widths=(64,), stream_width=32) < 934_071 / 4


def test_weights_start_as_xavier_says_and_biases_at_nothing_but_for_the_expected_return():
    network = make(self_attention=True)
    expecting = network.head.value[-1]
    for name, module in network.named_modules():
        if isinstance(module, nn.Linear):
            bound = math.sqrt(6 / sum(module.weight.shape))
            assert module.weight.abs().max() <= bound and module.weight.abs().max() > 0.9 * bound, name
            assert module is expecting or (module.bias == 0).all(), name
        elif isinstance(module, nn.LayerNorm):
            assert (module.weight == 1).all() and (module.bias == 0).all(), name
    assert network.support[expecting.bias.argmax()] == 0, "returns around 0 are the likeliest"


def test_separate_heads_add_what_buttons_and_spinner_are_worth(played):
    logits = make(separate_heads=True)(torch.from_numpy(played[:20])).view(-1, 4, 11, 51)
    crossed = logits[:, :1, :1] + logits - logits[:, :, :1] - logits[:, :1]
    assert crossed.abs().max() < 1e-5, "no move is worth more than its parts"
    joint = make()(torch.from_numpy(played[:20])).view(-1, 4, 11, 51)
    assert (joint[:, :1, :1] + joint - joint[:, :, :1] - joint[:, :1]).abs().max() > 0.1


# --- what makes no difference -----------------------------------------------------------------------------------------


def slot_values(slot: int) -> list[int]:
    names = [name for name in layout.NAMES if name.startswith((f"enemy_{slot}_", f"top_rail_{slot}_"))]
    return [INDEX[name] for name in names]


def summary(network: Any, observation: np.ndarray) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = network.body.encoder(torch.from_numpy(observation))
    return found


@pytest.mark.parametrize("self_attention", [False, True])
def test_enemies_that_swap_slots_leave_the_summary_as_it_is(played, self_attention):
    network, swapped = trained(self_attention=self_attention), played.copy()
    for slot in range(7):
        swapped[:, slot_values(slot)] = played[:, slot_values(6 - slot)]
    assert (swapped != played).any()
    assert torch.allclose(summary(network, swapped), summary(network, played), atol=1e-4)


@pytest.mark.parametrize("self_attention", [False, True])
def test_what_is_left_over_in_an_empty_slot_does_not_matter(played, self_attention):
    network, changed = trained(self_attention=self_attention), played.copy()
    occupied = played[:, layout.ENEMY_DEPTHS] > 0
    for slot in range(7):
        leftover = [i for i in slot_values(slot) if i not in range(*layout.ENEMY_DEPTHS.indices(195))]
        rows = ~occupied[:, slot] & occupied.any(1)
        changed[np.ix_(rows, leftover)] = 0.7
    assert (changed != played).any()
    assert torch.equal(summary(network, changed), summary(network, played))


@pytest.mark.parametrize("self_attention", [False, True])
def test_without_enemies_attention_is_spread_evenly_and_everything_is_finite(self_attention):
    pupil = RainbowPupil(trained(self_attention=self_attention))
    nobody = np.zeros((1, 195), np.float32)
    nobody[:, INDEX["player_position"]] = 5 / 15
    for part in (layout.ENEMY_LANES, layout.RIM_LANES, layout.TOP_RAIL_LANES):
        nobody[:, part] = -1
    found = pupil.attention(nobody)
    assert np.allclose(found.weights, 1 / 7) and not found.occupied.any()
    assert np.isfinite(pupil.values(nobody)).all()


def test_the_network_plays_the_same_in_training_and_evaluation_mode(played):
    network, observation = make(), torch.from_numpy(played)
    assert torch.equal(network.train()(observation), network.eval()(observation))


@pytest.mark.parametrize("self_attention", [False, True])
def test_half_precision_sees_nearly_the_same(played, self_attention):
    network, observation = make(self_attention=self_attention), torch.from_numpy(played)
    with torch.autocast("cpu", torch.bfloat16):
        found = network(observation)
    expected = network(observation)
    assert found.dtype == torch.bfloat16 and (found - expected).abs().max() < 0.05 * expected.abs().max()


class Creations(TorchDispatchMode):
    """Notes operations that make a tensor out of nothing or move one to another device."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().removeprefix("aten::").partition(".")[0]
        if name in ("arange", "zeros", "ones", "full", "linspace", "scalar_tensor", "lift_fresh"):
            self.found.append(name)
        elif name == "_to_copy" and (kwargs or {}).get("device") not in (None, args[0].device):
            self.found.append(name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", OPTIONS)
def test_a_forward_pass_creates_no_tensor_on_the_device(name, played):
    network, observation = make(**OPTIONS[name]), torch.from_numpy(played)
    with Creations() as creations:
        torch.zeros(3)
        network(observation)
    assert creations.found == ["zeros"]  # the one that shows that they are noticed


@pytest.mark.parametrize("name", OPTIONS)
def test_everything_lives_on_the_device_of_the_network(name):
    network = make(**OPTIONS[name]).to("meta")  # has no numbers, and refuses to be mixed with tensors that have
    logits = network(torch.zeros(3, 195, device="meta"))
    assert logits.device.type == "meta" and network.expected(logits).shape == (3, 44)


# --- what it attends to -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("self_attention", [False, True])
def test_attention_is_told_nearest_enemy_first_with_the_slot_it_is_in(played, self_attention):
    network = trained(self_attention=self_attention)
    found = RainbowPupil(network.frozen()).attention(played)
    _, expected = plainly(network, played)  # sorts its tokens
    assert found.weights.shape == (len(played), 8, 16, 7)
    assert np.allclose(found.weights, expected.detach().numpy(), atol=1e-4)
    assert np.allclose(found.weights.sum(3), 1.0, atol=1e-5)
    depths = np.take_along_axis(played[:, layout.ENEMY_DEPTHS], found.slots, 1)
    assert np.array_equal(found.occupied, depths > 0)
    assert all((np.diff(row[row > 0]) >= 0).all() and not row[(row > 0).sum() :].any() for row in depths)
    assert found.lane.tolist() == np.round(15 * played[:, INDEX["player_position"]]).astype(int).tolist()


def test_the_report_of_heads_that_do_known_things():
    weights = np.zeros((3, 8, 16, 7), np.float32)
    weights[0, :, :, :2] = 0.5  # two enemies, all heads and lanes alike,
    weights[0, 0, :, :2] = [1.0, 0.0]  # but the first head looks at the nearest alone
    weights[0, 1, 4, :2] = [0.25, 0.75]  # and the second, in the player's lane, rather at the other
    weights[1, :, :, 0] = 1.0  # one enemy: says nothing about the network
    weights[2] = 1 / 7  # none
    occupied = np.arange(7) < np.array([[2], [1], [0]])
    found = Attention(weights, np.tile(np.arange(7), (3, 1)), occupied, lane=np.array([4, 0, 0]))
    report = {name: values for name, values, _ in attention_report(found)}
    mixed = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75)) / math.log(2)
    assert report["slots occupied"] == pytest.approx((2 / 3, 1 / 3, 0, 0, 0, 0, 0))
    assert report["entropy"] == pytest.approx((0.0, (15 + mixed) / 16, *[1.0] * 6), abs=1e-6)
    assert report["player's lane"] == pytest.approx((1.0, 0.75, *[0.5] * 6))
    assert report["all lanes"] == pytest.approx((1.0, (15 * 0.5 + 0.75) / 16, *[0.5] * 6))
    assert report["nearest enemy"] == pytest.approx((1.0, (15 * 0.5 + 0.25) / 16, *[0.5] * 6))
    assert report["farthest enemy"] == pytest.approx((0.0, (15 * 0.5 + 0.75) / 16, *[0.5] * 6))
    # Half the difference: of the first head to the six even ones 0.5, to the second 0.5 and in one lane 0.75.
    assert report["difference"][0] == pytest.approx((6 * 0.5 + (15 * 0.5 + 0.75) / 16) / 7)
    assert report["difference"][2] == pytest.approx((0.5 + 0.25 / 16) / 7)
    assert report["leakage"] == (0.0,)


def test_the_report_shows_attention_that_leaks_to_empty_slots():
    weights = np.full((1, 8, 16, 7), 1 / 7, np.float32)
    occupied = np.arange(7)[None] < 5
    report = attention_report(Attention(weights, np.arange(7)[None], occupied, lane=np.array([0])))
    assert report[-1].name == "leakage" and report[-1].values == pytest.approx((2 / 7,))


def test_the_report_of_frames_without_enemies_has_nothing_to_say():
    weights = np.full((2, 8, 16, 7), 1 / 7, np.float32)
    nothing = Attention(weights, np.tile(np.arange(7), (2, 1)), np.zeros((2, 7), np.bool_), lane=np.array([0, 1]))
    occupied, *rest = attention_report(nothing)
    assert occupied.values == (0.0,) * 7 and all(row.values == () for row in rest)


def test_a_real_network_never_leaks(played):
    report = {row.name: row.values for row in attention_report(RainbowPupil(trained().frozen()).attention(played))}
    assert report["leakage"] == (0.0,) and len(report["entropy"]) == 8
    assert report["at enemies"] == pytest.approx((1.0,) * 8)


# --- attention that sees shots as well --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokens():
    torch.manual_seed(3)
    return TokenEncoder().requires_grad_(False)


def changed(observation: Any, index: int, value: float) -> Any:
    other = observation.clone()
    other[:, index] = value
    return other


def test_enemies_their_shots_and_its_own_are_tokens_and_empty_slots_are_not(played, tokens):
    seen = torch.from_numpy(played[:8]).clone()
    for depths in (layout.ENEMY_DEPTHS, layout.ENEMY_SHOT_DEPTHS, layout.SHOT_DEPTHS):
        seen[:, depths] = 0.0
    for depths, lanes in (
        (layout.ENEMY_DEPTHS, layout.ENEMY_LANES),
        (layout.ENEMY_SHOT_DEPTHS, layout.ENEMY_SHOT_LANES),
        (layout.SHOT_DEPTHS, layout.SHOT_LANES),
    ):
        gone, lane = seen, lanes.start
        there = changed(gone, depths.start, 0.5)
        assert not torch.allclose(tokens(there), tokens(gone))
        assert torch.equal(tokens(changed(gone, lane, 0.2)), tokens(gone)), "where nothing is makes no difference"
        two_away = tokens(changed(there, lane, 2 / 15)) - tokens(changed(there, lane, 0.0))
        assert two_away.abs().amax() > 1e-3, "where something is does"


def test_its_lanes_lie_around_the_player_and_are_told_as_those_of_the_board(played, tokens):
    closed = torch.from_numpy(played[played[:, layout.LEVEL_OPEN] == 0][:16])
    one, other = (changed(closed, layout.PLAYER_LANE, lane / 15) for lane in (3, 8))
    assert torch.equal(tokens(one), tokens(other)), "the whole tube was turned by five lanes"
    weights, turned = (tokens.attend(seen)[1] for seen in (one, other))
    assert weights.shape == (len(closed), 16, 4, 7)
    assert torch.allclose(weights.roll(5, 1), turned)


def test_the_report_counts_what_goes_to_shots_apart(played):
    torch.manual_seed(4)
    network = build_network(shape_of(NetworkConfig(network="attention", widths=(32,)), RainbowConfig()))
    report = {row.name: row.values for row in attention_report(RainbowPupil(network.frozen()).attention(played))}
    assert all(len(report[name]) == 4 for name in ("at enemies", "entropy", "nearest enemy", "difference"))
    assert all(0.0 < part < 1.0 for part in report["at enemies"]) and report["leakage"] == (0.0,)
    assert all(0.0 <= value <= 1.0 for value in report["entropy"])


# --- learning with it -------------------------------------------------------------------------------------------------


def test_moves_agree_by_buttons_and_by_the_way_the_spinner_turns():
    for move, (fire, zap, spinner) in enumerate(ACTIONS.tolist()):
        assert FACTORS["buttons"][move] == 2 * fire + zap
        assert FACTORS["direction"][move] == (spinner > 0) - (spinner < 0)


# --- pupils -----------------------------------------------------------------------------------------------------------


def saved(path, network: Any, **options: Any) -> None:
    state = {"shape": published(**options)}
    tensors = named_weights(network, "network")
    checkpoints.save(path, tensors, state, kind=CHECKPOINT_KIND, task_version=TASK_VERSION)


def test_a_pupil_takes_the_move_of_the_highest_expected_return(played):
    pupil = RainbowPupil(make().frozen())
    chances, returns = pupil.distributions(played)
    values = pupil.values(played)
    assert chances.shape == (len(played), 44, 51) and np.allclose(chances.sum(2), 1.0, atol=1e-5)
    assert np.allclose(chances @ returns, values, atol=1e-3) and values.dtype == np.float32
    games = Games(starts(9, seed=2, level=list(range(1, 18, 2))))
    assert pupil.act(games.frames).tolist() == pupil.values(games.frames.observation).argmax(1).tolist()


def test_a_visible_only_pupil_plays_the_same_whatever_the_hidden_values_are(played):
    changed = played.copy()
    changed[:, list(layout.HIDDEN)] = 0.7
    blind, seeing = RainbowPupil(make(visible_only=True)), RainbowPupil(make())
    assert np.array_equal(blind.values(changed), blind.values(played))
    assert not np.array_equal(seeing.values(changed), seeing.values(played))


@pytest.mark.parametrize("name", OPTIONS)
def test_a_pupil_from_a_file_plays_as_the_one_that_was_saved(tmp_path, played, name):
    network = trained(**OPTIONS[name])
    saved(tmp_path / "pupil.safetensors", network, **OPTIONS[name])
    pupil = load_pupil(tmp_path / "pupil.safetensors")
    assert isinstance(pupil, RainbowPupil)
    assert np.array_equal(pupil.values(played), RainbowPupil(network.frozen()).values(played))


def test_a_pupil_from_a_file_is_a_player_by_its_path_and_can_be_watched(tmp_path):
    path = tmp_path / "pupil.safetensors"
    saved(path, make(widths=(32,)), widths=(32,))
    assert isinstance(find_player(str(path)), RainbowPupil)
    frames = Games(starts(3, seed=1)).frames
    decided = WatchedPlayer(str(path), None).decide(frames)
    assert decided.values is not None and decided.values.shape == (3, 44)
    assert decided.commands.tolist() == ACTIONS[decided.values.argmax(1)].tolist()


def test_pupils_of_the_fast_learner_are_recognised_too_and_others_refused(tmp_path, played):
    path = tmp_path / "pupil.safetensors"
    fast = lane_map_network.ValueNetwork((8,))
    about = {"widths": [8], "visible_only": False}
    tensors = named_weights(fast, "network")
    checkpoints.save(path, tensors, about, kind=lane_map_network.CHECKPOINT_KIND, task_version=TASK_VERSION)
    pupil = load_pupil(path)
    assert np.array_equal(pupil.values(played), lane_map_network.Pupil(fast).values(played))
    checkpoints.save(path, tensors, about, kind="echelon-ppo", task_version=TASK_VERSION)
    with pytest.raises(CheckpointMismatch, match="echelon-ppo, expected tempest-pqn or tempest-rainbow"):
        load_pupil(path)
    saved(path, make(widths=(32,)), widths=(48,))
    with pytest.raises(StateMismatch, match="another network"):
        load_pupil(path)


def test_without_attention_the_trunk_sees_the_values_alone_and_there_is_none_to_tell(played):
    network = build_network(published(network="plain"))
    assert next(network.body.parameters()).shape[1] == 195
    pupil = RainbowPupil(network.frozen())
    thoughts = pupil.explain(played)
    assert thoughts.attention is None and not pupil.attends
    assert np.abs(thoughts.values - pupil.values(played)).max() < 1e-4
