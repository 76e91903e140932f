"""What a person may change in a training: every command, what it answers, and what becomes of the schedules."""

import itertools
import json

import pytest

from protege.train.controls import CONTROLS, ControlError, Controls, Report, Scheduled, stepped

NOW = Scheduled(frames=1_000_000, epsilon=0.02, teacher=0.3)


def obey(controls, *commands):
    """Obey commands without arguments, or (name, arguments); the last answer."""
    for command in commands:
        name, arguments = command if isinstance(command, tuple) else (command, {})
        answer = controls.obey(name, arguments, NOW)
    return answer


def test_untouched_switches_leave_every_schedule_alone():
    controls = Controls(1e-3)
    assert controls.epsilon(NOW) == 0.02 and controls.teacher(NOW) == 0.3 and controls.rate_factor == 1.0
    assert controls.learning and controls.changed() == ""


# --- epsilon ---


@pytest.mark.parametrize(
    ("share", "down", "up"),
    [
        (0.0, 0.0, 0.01),
        (0.02, 0.01, 0.03),
        (0.095, 0.085, 0.105),
        (0.10, 0.09, 0.15),  # down one point, up five
        (0.11, 0.06, 0.16),
        (0.5, 0.45, 0.55),
        (0.97, 0.92, 1.0),
        (1.0, 0.95, 1.0),
    ],
)
def test_steps_are_a_point_where_a_share_is_small_and_five_where_it_is_not(share, down, up):
    assert stepped(share, -1) == pytest.approx(down, abs=1e-9) and stepped(share, 1) == pytest.approx(up, abs=1e-9)


def test_a_step_starts_from_the_schedule_and_freezes_it():
    controls = Controls(1e-3)
    assert obey(controls, ("epsilon", {"step": 1})) == "epsilon 3 %, fixed"
    assert obey(controls, ("epsilon", {"step": -1}), ("epsilon", {"step": -1})) == "epsilon 1 %, fixed"
    assert controls.epsilon(NOW._replace(epsilon=0.5)) == 0.01
    assert obey(controls, ("epsilon", {"schedule": True})) == "epsilon back on schedule: 2 %"
    assert controls.epsilon(NOW._replace(epsilon=0.5)) == 0.5


def test_greedy_wins_while_it_is_on_and_forgets_nothing():
    controls = Controls(1e-3)
    assert obey(controls, ("epsilon", {"value": 0.4}), "greedy") == "greedy on: epsilon 0 %"
    assert controls.epsilon(NOW) == 0.0
    assert obey(controls, ("epsilon", {"step": 1})) == "epsilon 45 %, fixed; greedy is on, so not yet"
    assert controls.epsilon(NOW) == 0.0
    assert obey(controls, "greedy") == "greedy off: epsilon 45 %"
    assert controls.epsilon(NOW) == 0.45


def test_the_pulse_is_a_triangle_of_half_a_million_frames_from_where_it_was_switched_on():
    controls = Controls(1e-3)
    obey(controls, ("epsilon", {"value": 0.05}), "pulse")
    waves = {0: 0.05, 125_000: 0.15, 250_000: 0.25, 375_000: 0.15, 500_000: 0.05, 625_000: 0.15}
    for later, expected in waves.items():
        assert controls.epsilon(NOW._replace(frames=NOW.frames + later)) == pytest.approx(expected)
    obey(controls, ("pulse", {"on": True}))  # it is on: its wave goes on
    assert controls.pulse_since == NOW.frames
    assert obey(controls, "pulse") == "epsilon pulse off: epsilon 5 %"


def test_pulses_of_the_settings_begin_by_themselves_and_can_be_switched_off():
    controls = Controls(1e-3, pulse_from=900_000)
    assert controls.epsilon(NOW._replace(frames=800_000)) == 0.02, "not yet"
    assert controls.epsilon(NOW) == pytest.approx(0.02 + 0.23 * 0.4) and controls.changed() == ""
    assert not controls.view()["epsilon"]["overridden"] and controls.view()["pulse"] == {"on": True, "scheduled": True}
    assert obey(controls, "pulse") == "epsilon pulse off: epsilon 2 %"
    assert controls.changed() == "no epsilon pulse" and controls.view()["epsilon"]["overridden"]
    restored = Controls(1e-3, pulse_from=900_000)
    restored.restore(json.loads(json.dumps(controls.state())))
    assert restored.changed() == "no epsilon pulse"
    assert obey(restored, "pulse").startswith("epsilon pulse on") and restored.pulse_since == NOW.frames


def test_a_resumed_training_has_the_pulses_of_its_settings_unless_somebody_switched_them():
    later = Controls(1e-3, pulse_from=2_000_000)
    later.restore(Controls(1e-3, pulse_from=900_000).state())
    assert later.pulse_since == 2_000_000 and later.changed() == ""


def test_the_pulse_never_lowers_epsilon():
    controls = Controls(1e-3)
    obey(controls, "pulse")
    assert controls.epsilon(Scheduled(NOW.frames + 250_000, 0.8, 0.0)) == 0.8


# --- teacher ---


def test_off_and_only_in_any_order_never_lose_the_teachers_value():
    for toggles in itertools.product(["teacher_off", "teacher_only"], repeat=5):
        controls = Controls(1e-3)
        obey(controls, ("teacher", {"value": 0.7}), *toggles)
        obey(controls, ("teacher_off", {"on": False}), ("teacher_only", {"on": False}))
        assert controls.teacher(NOW) == 0.7, toggles


def test_off_is_none_only_is_all_and_the_later_one_counts():
    controls = Controls(1e-3)
    assert obey(controls, "teacher_off") == "teacher off: teacher 0 %" and controls.teacher(NOW) == 0.0
    assert obey(controls, "teacher_only") == "teacher only: teacher 100 %" and controls.teacher(NOW) == 1.0
    assert obey(controls, ("teacher_off", {"on": False})) == "teacher off ends: teacher 100 %", "it was off no more"
    assert obey(controls, ("teacher", {"step": 1})) == "teacher 35 %, fixed; teacher only is on, so not yet"
    assert obey(controls, "teacher_only") == "teacher only ends: teacher 35 %"
    assert obey(controls, ("teacher", {"schedule": True})) == "teacher back on schedule: 30 %"


# --- learning ---


def test_the_learning_rate_doubles_and_halves_between_its_limits():
    controls = Controls(1e-3)
    assert obey(controls, ("learning_rate", {"step": 1})) == "learning rate 0.002 at its peak, 2 times the setting"
    for _ in range(5):
        answer = obey(controls, ("learning_rate", {"step": 1}))
    assert answer == "learning rate stays 0.01 at its peak, which is the limit"
    assert controls.rate_factor == pytest.approx(10.0)
    for _ in range(20):
        answer = obey(controls, ("learning_rate", {"step": -1}))
    assert answer == "learning rate stays 1e-06 at its peak, which is the limit"
    assert controls.rate_factor == pytest.approx(1e-3)
    assert obey(controls, ("learning_rate", {"value": 0.004})).startswith("learning rate 0.004")
    assert obey(controls, ("learning_rate", {"schedule": True})) == "learning rate back on schedule: 0.001 at its peak"
    assert controls.rate_factor == 1.0


def test_however_low_the_peak_the_end_of_the_schedule_stays_below_it():
    controls, peak, end = Controls(1e-3), 1e-3, 5e-5
    for _ in range(20):
        obey(controls, ("learning_rate", {"step": -1}))
        assert end * controls.rate_factor < peak * controls.rate_factor


def test_a_peak_beyond_the_limits_only_moves_towards_them():
    controls = Controls(0.05)
    assert "stays 0.05" in obey(controls, ("learning_rate", {"step": 1}))
    assert obey(controls, ("learning_rate", {"step": -1})).startswith("learning rate 0.025")


def test_learning_is_switched_off_and_on():
    controls = Controls(1e-3)
    assert obey(controls, "learning") == "learning off: it plays on, without updates" and not controls.learning
    assert obey(controls, ("learning", {"on": False})).startswith("learning off") and not controls.learning
    assert obey(controls, "learning") == "learning on" and controls.learning


# --- what others see, and what is kept ---


def test_everything_but_whether_it_learns_survives_a_checkpoint():
    controls, restored = Controls(1e-3), Controls(1e-3)
    obey(controls, ("epsilon", {"value": 0.4}), "greedy", "pulse", ("teacher", {"value": 0.7}), "teacher_off")
    obey(controls, ("learning_rate", {"step": 1}), "learning")
    restored.restore(json.loads(json.dumps(controls.state())))
    assert restored.learning and restored.view() | {"learning": {"on": False}} == controls.view()
    kept = "epsilon fixed at 40 %, greedy, epsilon pulse, teacher fixed at 70 %, teacher off, learning rate times 2"
    assert restored.changed() == kept


def test_a_value_counts_as_overridden_whichever_switch_did_it():
    for commands, overridden in (
        ([("epsilon", {"value": 0.02})], {"epsilon"}), (["greedy"], {"epsilon"}), (["pulse"], {"epsilon"}),
        ([("teacher", {"step": 1})], {"teacher"}), (["teacher_off"], {"teacher"}), (["teacher_only"], {"teacher"}),
        ([("learning_rate", {"step": 1})], {"learning_rate"}), (["learning", "learning"], set()),
    ):  # fmt: skip
        controls = Controls(1e-3)
        obey(controls, *commands)
        assert {name for name, state in controls.view().items() if state.get("overridden")} == overridden


def test_a_learner_answers_with_a_table_or_says_that_a_command_means_nothing_to_it():
    table = Report("replay", ("who", "moves", "meaning"), (("teacher", "25", "advice"), ("pupil", "1,175", "play")))
    controls = Controls(1e-3, {"replay": lambda: table, "flush": lambda: "emptied: 1,200 moves"})
    assert obey(controls, "replay") is table
    assert obey(controls, "flush") == "emptied: 1,200 moves"
    assert table.text() == (
        "replay\n"
        "who      moves  meaning\n"
        "teacher     25  advice\n"
        "pupil    1,175  play"
    )  # fmt: skip
    for unknown in ("attention", "dance", "save"):
        assert obey(controls, unknown) == f"{unknown} means nothing to this learner"
    assert "flush" in controls.view() and "attention" not in controls.view()


# --- arguments ---


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("save", {}), ("greedy", {}), ("greedy", {"on": True}), ("greedy", {"on": False}),
        ("epsilon", {"value": 0}), ("epsilon", {"value": 1.0}), ("epsilon", {"step": 1}), ("epsilon", {"step": -1}),
        ("epsilon", {"schedule": True}), ("learning_rate", {"value": 1e-6}), ("learning_rate", {"value": 1e-2}),
    ],
)  # fmt: skip
def test_arguments_that_a_control_takes(name, good):
    CONTROLS[name].check(good)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("save", {"value": 1}), ("greedy", {"on": 1}), ("greedy", {"on": True, "x": 1}), ("greedy", {"value": 1}),
        ("epsilon", {}), ("epsilon", {"value": 1.01}), ("epsilon", {"value": -0.1}), ("epsilon", {"value": "1"}),
        ("epsilon", {"value": float("nan")}), ("epsilon", {"value": True}), ("epsilon", {"value": 0.5, "step": 1}),
        ("epsilon", {"step": 2}), ("epsilon", {"step": True}), ("epsilon", {"schedule": False}),
        ("learning_rate", {"value": 0.02}), ("learning_rate", {"value": 0}),
    ],
)  # fmt: skip
def test_other_arguments_are_refused_and_change_nothing(name, wrong):
    with pytest.raises(ControlError, match=f"command {name} takes"):
        CONTROLS[name].check(wrong)
    controls = Controls(1e-3, {"save": lambda: "saved"})
    assert obey(controls, (name, wrong)).startswith(f"not done: command {name} takes")
    assert controls.state() == Controls(1e-3).state()


def test_the_range_of_a_number_is_named():
    with pytest.raises(ControlError, match=r'"value": 1e-06 to 0.01.*got {"value": 5}'):
        CONTROLS["learning_rate"].check({"value": 5})


def test_every_control_says_what_it_does():
    assert all(control.meaning and control.label and control.name == name for name, control in CONTROLS.items())
