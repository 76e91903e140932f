"""From packets to frames and steps: what counts, what is cut, and what a game came to. Numbers by hand."""

import numpy as np
import pytest

from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.streams import Decisions, Steps, Streams
from protege.games.tempest.rules import ram
from protege.games.tempest.task.actions import ACTIONS, joint_actions
from protege.games.tempest.task.env import Frames
from tests.games.tempest.arcade.client import packet_of


def values_of(mark: int, state: int, mode: int, alive: bool, lives: int, level: int) -> np.ndarray:
    """Values that say what the header says, and carry a mark by which to know them again."""
    values = np.zeros(195, np.float32)
    values[0], values[1], values[28] = state / 36, mode / 255, level / 98
    values[3], values[6], values[194] = lives / 6, alive, mark / 1000
    return values


class Story:
    """Tells one client's ticks to streams."""

    def __init__(self, streams: Streams, place: int = 0):
        self.streams, self.place = streams, place
        self.counter = 0
        streams.open(place)

    def tick(
        self, mark: int = 0, *, state: int = ram.PLAYING, mode: int = 0xC0, alive: bool = True, lives: int = 3,
        level: int = 0, action: int = 0, **header: float,
    ) -> tuple[Steps, Frames | None]:  # fmt: skip
        """One tick; an action answers it if one is asked for."""
        self.counter += 1
        values = values_of(mark, state, mode, alive, lives, level)
        about = {"counter": self.counter} | header
        packet = packet_of(values, state=state, mode=mode, level=level, **about)  # type: ignore[arg-type]
        packets, found = wire.decode(packet)
        assert not wire.find_faults(packets, found, np.full((1, 3), wire.NOTHING_SENT, np.int16)).any()
        steps, asked, frames = self.streams.take(np.array([self.place]), packets, found)
        frames = Frames._make([part.copy() for part in frames])
        assert len(frames.score) == asked.sum()
        if asked.any():
            self.streams.decided(np.array([self.place]), Decisions([action], 1))
        return steps, frames if asked.any() else None


def marks(steps: Steps) -> list[int]:
    return (steps.observations[:, 194] * 1000).round().astype(int).tolist()  # type: ignore[no-any-return]


def test_a_step_is_a_decision_with_the_reward_of_the_tick_it_led_to():
    story = Story(Streams())
    steps, frames = story.tick(10, action=13)
    assert len(steps.clients) == 0 and frames is not None
    steps, _ = story.tick(11, objective=150, subjective=-2.5, action=14)
    assert marks(steps) == [10] and steps.actions.tolist() == [13] and steps.actors.tolist() == [1]
    assert steps.rewards.tolist() == [np.float32(1.475)]  # 0.01 * 150 - 0.01 * 2.5
    assert steps.objectives.tolist() == [150.0]
    assert not steps.terminated.any() and not steps.truncated.any()


def test_a_death_ends_the_episode_and_the_ticks_of_dying_leave_no_trace():
    story = Story(Streams())
    story.tick(10)
    steps, frames = story.tick(99, alive=False, done=1, objective=-1000, subjective=0)
    assert marks(steps) == [10] and steps.terminated.tolist() == [True] and steps.rewards.tolist() == [-10.0]
    assert frames is None, "nobody is asked about a death"
    for state in (ram.PLAYING, ram.LIFE_LOST, ram.NEW_LIFE, ram.DELAY):
        steps, frames = story.tick(99, state=state, alive=False, objective=500)
        assert len(steps.clients) == 0 and frames is None
    _, frames = story.tick(20, lives=2)
    assert frames is not None and frames.terminated.tolist() == [True] and frames.lives.tolist() == [2]
    steps, frames = story.tick(21)
    assert marks(steps) == [20] and frames is not None and not frames.terminated.any()


def test_ticks_between_two_levels_pass_and_the_step_keeps_the_reward_of_its_own_tick():
    story = Story(Streams())
    story.tick(10, state=ram.ZOOM)
    for state in (ram.LEVEL_DONE, ram.ZOOM_IN, ram.ZOOM_IN):
        steps, frames = story.tick(99, state=state, objective=50 if state == ram.LEVEL_DONE else 700)
        assert len(steps.clients) == 0 and frames is None
    steps, frames = story.tick(11, level=1)
    assert marks(steps) == [10] and steps.objectives.tolist() == [50.0] and not steps.terminated.any()
    assert frames is not None and frames.level.tolist() == [2]


@pytest.mark.parametrize(
    "where",
    [
        {"mode": 0x40},
        {"state": ram.LEVEL_SELECT},
        {"state": ram.ENTER_INITIALS},
        {"state": ram.DELAY},
        {"state": ram.ZOOM_IN},
        {"alive": False},
        {"mode": 0, "state": ram.PLAYING, "done": 1, "objective": -1000},
    ],
)
def test_attract_mode_menus_and_death_frames_are_neither_decided_nor_learned_from(where):
    story = Story(Streams())
    for _ in range(3):
        steps, frames = story.tick(99, **where)
        assert len(steps.clients) == 0 and frames is None


def test_a_client_that_goes_closes_its_stream_with_what_it_saw_last():
    streams = Streams()
    story = Story(streams)
    story.tick(10)
    story.tick(11, objective=50, action=3)
    closing = streams.cut(0)
    assert marks(closing) == [11] and closing.truncated.tolist() == [True] and closing.rewards.tolist() == [0.0]
    assert len(streams.cut(0).clients) == 0, "a stream is closed once"


def test_a_client_that_goes_between_levels_closes_with_its_last_decision():
    streams = Streams()
    story = Story(streams)
    story.tick(10)
    story.tick(99, state=ram.LEVEL_DONE, objective=50)
    assert marks(streams.cut(0)) == [10]


def test_a_missing_tick_cuts_the_stream_and_the_next_one_has_another_number():
    story = Story(Streams())
    story.tick(10)
    story.tick(11)
    story.counter += 1
    steps, frames = story.tick(12, objective=900)
    assert marks(steps) == [11] and steps.truncated.tolist() == [True] and steps.rewards.tolist() == [0.0]
    assert frames is not None
    later, _ = story.tick(13, objective=100)
    assert marks(later) == [12] and later.rewards.tolist() == [1.0] and not later.truncated.any()
    assert later.streams[0] != steps.streams[0]


def test_the_tick_counter_wraps_at_65536():
    story = Story(Streams())
    story.counter = 65_534
    story.tick(10)
    steps, _ = story.tick(11, counter=0)
    assert marks(steps) == [10] and not steps.truncated.any()


def test_a_machine_that_is_reset_in_play_closes_its_stream():
    story = Story(Streams())
    story.tick(10)
    steps, _ = story.tick(99, state=ram.NEW_GAME, mode=0)
    assert marks(steps) == [10] and steps.truncated.tolist() == [True]


def test_clients_never_mix():
    streams = Streams()
    one, other = Story(streams, 3), Story(streams, 35)
    one.tick(10)
    other.tick(20)
    first, second = one.tick(11)[0], other.tick(21)[0]
    assert (first.clients.tolist(), marks(first)) == ([3], [10])
    assert (second.clients.tolist(), marks(second)) == ([35], [20])
    assert first.streams[0] != second.streams[0]


def test_a_place_taken_again_is_another_stream_that_knows_nothing_of_the_last():
    streams = Streams()
    story = Story(streams)
    story.tick(10, score=500)
    before = story.tick(11, score=550)[0].streams[0]
    streams.cut(0)
    again = Story(streams)
    again.tick(12)
    steps, frames = again.tick(13)
    assert marks(steps) == [12] and steps.streams[0] > before
    assert frames is not None and frames.score.tolist() == [0] and frames.frame.tolist() == [1]


# --- games ---


def test_the_score_goes_on_where_the_machine_wraps():
    story = Story(Streams())
    for shown in (0, 999_950, 50):
        _, frames = story.tick(score=shown)
    assert frames is not None and frames.score.tolist() == [1_000_050]


def test_a_start_bonus_may_take_the_score_over_a_million():
    streams = Streams()
    story = Story(streams)
    story.tick(score=0, level=80)
    story.tick(state=ram.LEVEL_DONE, score=150_000, level=80)
    story.tick(state=ram.ZOOM_IN, score=48_000, level=81)  # 898,000 for level 81
    _, frames = story.tick(score=48_150, level=81)
    assert frames is not None and frames.score.tolist() == [150_150] and not streams.broken_off
    story.tick(state=ram.HIGH_SCORE_CHECK, score=48_150, level=81)
    assert [game.start_bonus for game in streams.finished] == [898_000]


@pytest.mark.parametrize("first", [{"score": 0}, {"score": 0, "level": 3}, {"score": 4_000, "level": 6}])
def test_a_machine_that_begins_anew_in_mid_game_neither_wraps_nor_ends_a_game(first):
    streams = Streams()
    story = Story(streams)
    story.tick(1, score=0, level=6)
    story.tick(2, score=12_095, level=6)
    steps, frames = story.tick(3, **first)
    assert marks(steps) == [2] and steps.truncated.tolist() == [True] and steps.rewards.tolist() == [0.0]
    assert frames is not None and frames.score.tolist() == [first["score"]] and frames.frame.tolist() == [0]
    assert (streams.finished, streams.broken_off) == ([], 1)
    story.tick(4, **(first | {"score": 5_000}))
    story.tick(state=ram.HIGH_SCORE_CHECK, score=5_000)
    assert [game.score for game in streams.finished] == ([5_000] if first["score"] == 0 else [])


def test_a_reset_shortly_before_a_million_is_told_from_going_over_it_by_the_level():
    streams = Streams()
    story = Story(streams)
    for shown, level in ((0, 30), (995_000, 30), (0, 0)):
        _, frames = story.tick(score=shown, level=level)
    assert frames is not None and frames.score.tolist() == [0] and streams.broken_off == 1


def test_a_machine_that_is_switched_off_in_mid_game_leaves_no_result():
    streams = Streams()
    story = Story(streams)
    story.tick(score=0)
    story.tick(score=900)
    story.tick(state=ram.NEW_GAME, mode=0, score=0)
    assert (streams.finished, streams.broken_off) == ([], 1)
    for shown in (0, 100):
        _, frames = story.tick(score=shown)
    assert frames is not None and frames.score.tolist() == [100]


def test_a_start_bonus_is_kept_apart():
    streams = Streams()
    story = Story(streams)
    story.tick(score=0, level=8)
    story.tick(state=ram.LEVEL_DONE, score=400, level=8)
    story.tick(state=ram.ZOOM_IN, score=94_400, level=9)
    _, frames = story.tick(score=94_550, level=9)
    assert frames is not None and frames.score.tolist() == [550]
    story.tick(state=ram.HIGH_SCORE_CHECK, score=94_550, level=9)
    (game,) = streams.finished
    assert (game.score, game.start_bonus, game.start_level, game.level) == (550, 94_000, 9, 10)


def test_a_game_from_beginning_to_end():
    streams = Streams()
    story = Story(streams)
    for _ in range(4):
        story.tick(mode=0, score=77_000)  # attract mode shows an old score
    story.tick(state=ram.LEVEL_SELECT, score=0)
    for frame in range(5):
        _, frames = story.tick(score=100 * frame)
        assert frames is not None and frames.frame.tolist() == [frame] and frames.score.tolist() == [100 * frame]
    story.tick(alive=False, done=1, objective=-1000, score=400)
    assert not streams.finished
    story.tick(state=ram.GAME_OVER, alive=False, score=400)
    story.tick(state=ram.HIGH_SCORE_CHECK, mode=0xC0, alive=False, score=400)
    story.tick(mode=0, score=400)
    (game,) = streams.finished
    assert (game.score, game.frames, game.deaths, game.level, game.truncated) == (400, 5, 1, 1, False)
    _, frames = story.tick(score=0)
    assert frames is not None and (frames.frame.tolist(), frames.terminated.tolist()) == ([0], [False])


def test_a_game_joined_in_the_middle_is_played_but_is_no_result():
    streams = Streams()
    story = Story(streams)
    _, frames = story.tick(score=5000)
    assert frames is not None and frames.score.tolist() == [5000]
    story.tick(state=ram.HIGH_SCORE_CHECK, score=5000)
    assert not streams.finished


def test_a_game_that_never_ends_is_counted_once_when_it_has_lasted_long_enough():
    streams = Streams(longest_game=3)
    story = Story(streams)
    for frame in range(6):
        story.tick(score=100 * frame)
    story.tick(state=ram.HIGH_SCORE_CHECK, score=500)
    (game,) = streams.finished
    assert (game.frames, game.truncated, game.score) == (3, True, 300)


def test_commands_are_joint_actions_where_the_spinner_is_one_of_the_levels():
    assert joint_actions(ACTIONS).tolist() == list(range(44))
    assert joint_actions(np.array([[1, 0, 29], [0, 0, -11]], np.int8)).tolist() == [-1, -1]
