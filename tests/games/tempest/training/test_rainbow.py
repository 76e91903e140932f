"""Rainbow at work: who chooses, what is stored, when an update is due."""

import math
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from protege.games.tempest.agents.attention import Encoder
from protege.games.tempest.agents.rainbow import Body
from protege.games.tempest.arcade.streams import Decisions
from protege.games.tempest.rules import ram
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import TASK_VERSION, Frames, Games, starts
from protege.games.tempest.training.behaviour import Behaviour, Exploration
from protege.games.tempest.training.config import PRESETS, RainbowTraining, TempestConfig
from protege.games.tempest.training.evaluation import TempestSnapshot
from protege.games.tempest.training.rainbow import RainbowSession
from protege.games.tempest.training.sources import SimulatorSource
from protege.learn.replay import Actor, ReplayConfig
from protege.runs.checkpoints import load, save
from protege.train.session import Result
from tests.train.trainings import Alone

TINY = RainbowTraining(
    games=8,
    piece=4,
    batch=16,
    minimum_fill=40,
    replay_ratio=1.0,
    acting_every=2,
    target_sync_every=3,
    network="published",
    widths=(16,),
    replay=ReplayConfig(capacity=2_000, n_step=3),
    schedule_frames=1_000_000,
    warm_frames=0,
    warm_updates=0,
)
CONFIG = TempestConfig(learner="rainbow", frames=10_000, deterministic=True, rainbow=TINY, seed=5)


def session(folder: Path, **changes: Any) -> RainbowSession:
    config = replace(CONFIG, rainbow=replace(TINY, **changes))
    made = RainbowSession(config, Alone(folder), SimulatorSource(config))
    made.source.begin(resumed=True)  # without the teacher's first moves
    return made


def play_and_learn(made: RainbowSession, pieces: int) -> list[dict[str, float]]:
    return [made.update(made.collect(made.room())) for _ in range(pieces)]


def decide(frames: Frames, move: int, epsilon: float, teacher: float, **gate: float) -> Decisions:
    """What is decided on for a pupil that always makes one move."""
    explore = Exploration(epsilon, teacher, zoom_epsilon=0.2, zoom_teacher=2.0, **gate)
    return Behaviour(np.random.default_rng(1)).decide(frames, lambda some: np.full(len(some.score), move), explore)


def evaluate(made: RainbowSession, score: float) -> None:
    """As if it had just been measured."""
    made.teacher, snapshot = 20_000.0, TempestSnapshot(made.pupil(), made)
    snapshot.found = {"score_mean_low": score, "level_mean": 4.0}
    made.evaluated(snapshot, Result({}, (0.0,), ""), best=False)


@pytest.fixture(scope="module")
def frames():
    return Games(starts(4000, seed=1, level=3)).frames


def network_that_always_plays(move: int) -> Any:
    class Fixed(torch.nn.Module):
        support = torch.zeros(2)

        def forward(self, seen):
            return torch.nn.functional.one_hot(torch.full((len(seen),), move), 44).float()

        def expected(self, logits):
            return logits

    return Fixed()


FIRE, FIRE_AND_ZAP = 2 * 11 + 5, 3 * 11 + 5


def test_teacher_chance_and_pupil_choose_in_their_shares(frames):
    moves, actors, *_ = decide(frames, FIRE, epsilon=0.5, teacher=0.4)
    shares = [float((actors == actor).mean()) for actor in (Actor.TEACHER, Actor.RANDOM, Actor.PUPIL)]
    assert shares == pytest.approx([0.4, 0.3, 0.3], abs=0.03)
    assert (moves[actors == Actor.PUPIL] == FIRE).all()
    advised = frames.advice[actors == Actor.TEACHER]
    assert np.array_equal(ACTIONS[moves[actors == Actor.TEACHER]], advised)


def test_in_a_zoom_the_teacher_says_twice_as_much_and_chance_a_fifth(frames):
    zooming = frames._replace(observation=frames.observation.copy())
    zooming.observation[:, 0] = ram.ZOOM / 36
    _, actors, *_ = decide(zooming, FIRE, epsilon=0.5, teacher=0.4)
    shares = [float((actors == actor).mean()) for actor in (Actor.TEACHER, Actor.RANDOM, Actor.PUPIL)]
    assert shares == pytest.approx([0.8, 0.02, 0.18], abs=0.03)


def test_a_zap_that_the_gate_stops_is_stored_as_none_and_paid_for_by_that_move(frames):
    gate = {"zap_gate": 0.25, "zap_penalty": -0.05}
    moves, _, penalties, _ = decide(frames, FIRE_AND_ZAP, epsilon=0.0, teacher=0.0, **gate)
    assert set(moves.tolist()) == {FIRE, FIRE_AND_ZAP}
    stopped = moves == FIRE
    assert stopped.mean() == pytest.approx(0.75, abs=0.03)
    assert np.array_equal(penalties, np.where(stopped, np.float32(-0.05), np.float32(0)))
    assert (decide(frames, FIRE, epsilon=0.0, teacher=0.0, **gate).penalties == 0).all()


def test_the_teachers_own_zaps_pass_the_gate(frames):
    zapping = frames._replace(advice=np.tile(ACTIONS[FIRE_AND_ZAP], (4000, 1)))
    moves, *_ = decide(zapping, FIRE, epsilon=0.0, teacher=1.0, zap_gate=0.0)
    assert (moves == FIRE_AND_ZAP).all()


def test_every_zap_that_the_gate_stops_costs_its_own_frame(tmp_path, monkeypatch):
    made = session(tmp_path, zap_gate=0.0, epsilon=0.0, teacher_fraction=0.0, final_teacher_fraction=0.0)
    made.learner.acting = network_that_always_plays(FIRE_AND_ZAP)
    assert isinstance(made.source, SimulatorSource)
    monkeypatch.setattr(made.source.simulator, "rewards", lambda: np.zeros(8, np.float32))  # what is left is penalties
    content = made.collect(made.room()).content.rollout
    assert (content.rewards == np.float32(-0.05)).all() and (content.actions == FIRE).all()


def test_all_networks_lie_on_the_device_of_the_settings(tmp_path, monkeypatch):
    monkeypatch.setattr("protege.games.tempest.training.session.device_of", lambda config: torch.device("meta"))
    made = session(tmp_path)
    learner = made.learner
    for network in (learner.network, learner.averaged, learner.target, learner.acting, made.pupil().network):
        body = network.body
        assert isinstance(body, Body) and isinstance(body.encoder, Encoder)
        tensors = [*network.parameters(), *network.buffers(), *(body.encoder.folded or ())]
        assert {tensor.device.type for tensor in tensors} == {"meta"}


def test_every_frame_is_stored_and_allows_its_share_of_updates(tmp_path):
    made = session(tmp_path)
    figures = play_and_learn(made, 10)
    # 32 frames a piece, 16 samples an update, one sample a frame: two updates a piece once 40 steps can be drawn.
    assert made.frames == 320 and [bool(found) for found in figures].index(True) in (1, 2)
    first = [bool(found) for found in figures].index(True)
    assert made.learner.updates == 2 * (10 - first)
    assert len(made.replay) >= 320 - 3 * 8, "three frames wait in each game, fewer after a death"


def test_the_warm_start_plays_the_teacher_alone_and_then_learns_before_it_plays_on(tmp_path):
    made = session(tmp_path, warm_frames=64, warm_updates=10)
    play_and_learn(made, 2)
    assert made.replay.figures()["teacher"] == 1.0 and made.frames == 64
    play_and_learn(made, 2)
    assert made.frames == 64 and made.learner.updates == 12, "4 as soon as it could, then 4 and 4"
    play_and_learn(made, 3)
    assert made.frames > 64 and made.scheduled().teacher < 1.0


def test_the_teachers_share_follows_the_result_or_the_frames(tmp_path):
    by_result = session(tmp_path)
    assert by_result.scheduled().teacher == 0.5
    evaluate(by_result, 15_000.0)
    assert by_result.scheduled().teacher == pytest.approx(0.02 + 0.48 * 0.25)
    evaluate(by_result, 10_000.0)
    assert by_result.scheduled().teacher == pytest.approx(0.02 + 0.48 * 0.25), "never up again"
    by_frames = session(tmp_path, teacher_by="frames")
    by_frames.position = 2_500_000
    assert by_frames.scheduled().teacher == pytest.approx(0.26) and by_frames.scheduled().epsilon == pytest.approx(0.01)


def test_pulses_of_the_published_schedule_begin_at_three_million_frames(tmp_path):
    made = session(tmp_path, schedule_frames=0, pulse_from=PRESETS["full"].rainbow.pulse_from)
    for frames, epsilon in ((2_750_000, 0.01), (3_000_000, 0.01), (3_125_000, 0.13), (3_250_000, 0.25)):
        made.frames = made.position = frames
        assert made.figures()["epsilon"] == pytest.approx(epsilon), frames
    assert made.controls.changed() == "" and PRESETS["laptop"].rainbow.pulse_from == 0


def test_without_learning_it_fills_its_memory_and_catches_nothing_up(tmp_path):
    made = session(tmp_path)
    made.controls.learning = False
    play_and_learn(made, 8)
    assert made.learner.updates == 0 and made.frames == 256
    made.controls.learning = True
    play_and_learn(made, 1)
    assert made.learner.updates == 2


def test_keys_report_attention_and_memory_and_empty_it(tmp_path):
    made = session(tmp_path)
    play_and_learn(made, 4)

    def ask(name: str) -> Any:
        return made.controls.obey(name, {}, made.scheduled())

    assert "entropy" in ask("attention").text() and "teacher" in ask("replay").text()
    assert ask("flush").startswith("memory emptied") and len(made.replay) == 0
    assert "empty" in ask("attention").text()


def test_a_resumed_practice_with_its_memory_goes_on_bit_for_bit(tmp_path):
    def saved(made: RainbowSession) -> None:
        save(tmp_path / "last", made.tensors(), made.state(), kind="rainbow", task_version=TASK_VERSION)
        made.save_memory(wait=True)

    one = session(tmp_path, save_replay=True)
    play_and_learn(one, 8)
    saved(one)
    two = session(tmp_path, save_replay=True)
    checkpoint = load(tmp_path / "last")
    assert "restored" in two.restore(checkpoint, checkpoint.state)[0]
    assert play_and_learn(one, 50) == play_and_learn(two, 50)
    assert one.learner.updates == two.learner.updates >= 100
    for name, tensor in one.tensors().items():
        assert torch.equal(tensor, two.tensors()[name]), name


def test_a_memory_from_another_moment_than_the_checkpoint_is_not_joined_to_it(tmp_path):
    one = session(tmp_path, save_replay=True)
    play_and_learn(one, 8)
    one.save_memory(wait=True)
    play_and_learn(one, 2)  # it is killed between this checkpoint and its memory
    save(tmp_path / "last", one.tensors(), one.state(), kind="rainbow", task_version=TASK_VERSION)
    two = session(tmp_path, save_replay=True)
    checkpoint = load(tmp_path / "last")
    notes = two.restore(checkpoint, checkpoint.state)
    assert notes[1] == "it was saved 64 steps from the checkpoint: the run does not go on bit for bit"
    assert two.replay.state()["waiting"] == {}, "nothing that comes now goes on where it ended"


def test_who_waits_gets_the_newest_memory_saved_however_busy_it_is(tmp_path, monkeypatch):
    made, saving, go_on = session(tmp_path, save_replay=True), threading.Event(), threading.Event()
    ends: list[int] = []

    def slow_save(replay: Any, path: Path) -> int:
        ends.append(replay.state()["end"])
        saving.set()
        assert go_on.wait(30)
        return 0

    monkeypatch.setattr("protege.learn.replay_file.save", slow_save)
    monkeypatch.setattr("protege.games.tempest.training.rainbow.SAVING_PAUSE", 1e9)
    play_and_learn(made, 2)
    made.save_memory(wait=False)
    assert saving.wait(30)
    play_and_learn(made, 1)
    made.save_memory(wait=False)  # one is going on, so this changes nothing
    threading.Timer(0.1, go_on.set).start()
    made.save_memory(wait=True)
    assert ends == [64, 96]
    play_and_learn(made, 1)
    made.save_memory(wait=False)
    assert ends == [64, 96], "it pauses a multiple of what the last one took"
    made.next_saving = 0.0
    made.save_memory(wait=False)
    made.close()
    assert ends == [64, 96, 128]


def test_a_memory_that_cannot_be_saved_is_told_once(tmp_path):
    made = session(tmp_path / "gone", save_replay=True)
    play_and_learn(made, 2)
    at_once = made.save_memory(wait=False)  # if the other thread is quick
    made.close()
    made.next_saving = math.inf
    assert "the memory was not saved: " in at_once + made.save_memory(wait=False)
    assert made.save_memory(wait=False) == "" and "could not be saved" in made.save_memory(wait=True)


def test_without_its_memory_a_resumed_practice_says_so_and_fills_it_first(tmp_path):
    one = session(tmp_path)
    play_and_learn(one, 8)
    save(tmp_path / "last", one.tensors(), one.state(), kind="rainbow", task_version=TASK_VERSION)
    two = session(tmp_path)
    checkpoint = load(tmp_path / "last")
    assert "updates go on when it holds 40 steps" in two.restore(checkpoint, checkpoint.state)[0]
    updates = two.learner.updates
    play_and_learn(two, 1)
    assert two.learner.updates == updates and two.frames == one.frames + 32
    play_and_learn(two, 3)
    assert two.learner.updates > updates
