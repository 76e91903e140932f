"""The numbers of the slow reference, transcribed by hand from the tables of the game card (docs/echelon.md).

They stand here as the card prints them: one column for each class, weapon or preset. Nothing is taken from the
product's tables; a test compares the two.
"""

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

Column = Any  # one column of a table: a number or a word by the name of each row


def columns_of(text: str) -> dict[str, Column]:
    """The columns of a table by their names. A dash is an empty cell."""
    (_, *names), *rows = (line.split() for line in text.strip().splitlines())
    columns = {name: SimpleNamespace(name=name) for name in names}
    for label, *cells in rows:
        for name, cell in zip(names, cells, strict=True):
            setattr(columns[name], label, value_of(cell))
    return columns


def value_of(cell: str) -> float | str:
    if cell[0].isdigit():
        return int(cell) if cell.isdigit() else float(Fraction(cell))
    return "" if cell == "-" else cell


AIR, DEBRIS_FIELD, DIRT = 0, 4, 6

# Per second at the feet; speed is a factor.
MATERIALS = columns_of("""
name    air solid lava water debris_field solid_debris dirt glass reinforced foliage
id        0     1    2     3            4            5    6     7          8       9
hp        0   100    0     0           50          200    0    10       1000       1
bodies    -   yes    -     -          yes          yes    -   yes        yes       -
sight     -   yes    -     -          yes          yes    -     -        yes     yes
breaks    -   yes    -     -          yes          yes    -   yes          -     yes
heats     0     0   40     0           20            0    0     0          0       0
cools     0     0    0    30            0            0    0     0          0       0
damage    0     0    5     0         1.25            0    0     0          0       0
speed     1     1    1   0.6            1            1    1     1          1       1
""")

CLASSES = columns_of("""
name          scout light medium heavy
id                0     1      2     3
width           1.2   1.5    2.5   3.5
height          1.8   2.0    3.0   4.0
speed           7.0   6.8    5.5   2.5
yaw_rate        1.8   1.5    1.0   0.6
jet            18.0  16.0    0.0   0.0
hp             60.0  80.0  150.0 200.0
leg_hp         30.0  40.0   75.0 100.0
heat_capacity  75.0  80.0  100.0 130.0
dissipation    13.0  12.0   11.0  10.0
tonnage        20.0  35.0   55.0  85.0
stability     100.0 100.0  100.0 100.0
noise           1.0   1.5    2.5   4.0
solid_wreck     0.1   0.3    0.6   0.9
anti_missile      -     -      -   yes
""")

WEAPONS = """
name              laser            flamer missile             gauss        autocannon           painter smoke
id                    0                 1       2                 3                 4                 5     6
reach               8.0               4.5    50.0              20.0              12.0              10.0  20.0
sight_lock          0.0               0.0    12.0               0.0               0.0               0.0   0.0
damage             14.0               4.0    40.0              50.0               8.0               0.0   0.0
stability_damage    0.0               0.0    15.0              60.0               8.0               0.0   0.0
heat               22.0              10.0    45.0              15.0               6.0               5.0  10.0
target_heat         6.0              15.0     0.0               0.0               0.0               0.0   0.0
cooldown_ticks       12                 3      60                80                 4                20   100
timer                 0                 0       1                 2                 2                 3     1
cos_half_arc        0.5 0.707106781186548     0.0 0.866025403784439 0.707106781186548 0.866025403784439   0.0
speed               0.0               0.0    12.0              40.0              25.0               0.0  15.0
flight          at_once           at_once  homing         ballistic          straight           at_once straight
life_ticks            0                 0      84                10                10                 0    27
splash_radius       0.0               0.0     2.5               1.5               0.0               0.0   4.0
splash_scale        0.0               0.0     0.5               0.5               0.0               0.0   0.0
"""

# By class: what the buttons 0 to 3 fire, in the order of the weapons' ids.
BUTTONS = {
    "scout": ("painter", "", "", "smoke"),
    "light": ("flamer", "laser", "painter", "smoke"),
    "medium": ("laser", "painter", "autocannon", "smoke"),
    "heavy": ("laser", "missile", "gauss", "smoke"),
}

RULES = columns_of("""
name                            build              base             suite
dt                               0.05              0.05              0.05
ticks_per_decision                  5                 5                 5
gravity                          9.81              9.81              9.81
damping                          0.98              0.98              0.98
slide                             0.8              0.98              0.98
step_height                       1.1               1.1               1.1
jet_drain                         2/3               0.0               0.0
jet_refill                       0.25              0.25              0.25
vent_factor                       2.0               2.0               2.0
hot_fraction                      0.8               0.8               0.8
jam_heat                          3.0               3.0               3.0
counter_heat                      2.0               2.0               2.0
regen                            10.0              10.0              10.0
regen_legged                      0.5               0.5               0.5
regen_moving                      0.5               0.5               0.5
regen_suppressed                 0.75              0.75              0.75
regen_floor                       0.1               0.1               0.1
moving_speed                      1.0               1.0               1.0
knockdown_ticks                    60                60                60
stand_up_stability                0.5               0.5               0.5
legged_speed                      0.4               0.4               0.4
legged_jet                        0.5               0.5               0.5
legged_stability                  0.5               0.5               0.5
paint_ticks                       100               100               100
paint_bonus                       0.1               0.1               0.1
paint_quality                     0.7               0.7               0.7
suppress_ticks                     24                24                24
smoke_ticks                       200               200               200
ams_ticks                          20                20                20
ams_range                         5.5               5.5               5.5
ams_probability                   0.6               0.6               0.6
assist_fraction                  0.25              0.25              0.25
rear_factor                       1.5               1.5               1.5
cos_rear            0.707106781186548 0.707106781186548 0.707106781186548
leg_height                        0.3               0.3               0.3
leg_body_fraction                 0.5               0.5               0.5
aim_spread                       0.75               0.5               0.5
cos_focus_assist    0.980066577841242 0.980066577841242 0.980066577841242
cos_aim_assist      0.995004165278026 0.995004165278026 0.995004165278026
homing                            4.0               4.0               4.0
launch_up                         0.5               0.5               0.5
launch_above                      0.5               0.5               0.5
jam_range                        50.0              50.0              50.0
jam_weight                       0.85              0.85              0.85
counter_weight                   0.65              0.65              0.65
quality_min                      0.25              0.25              0.25
quality_max                       1.5               1.5               1.5
radar_range                      14.0              14.0              14.0
sight_range                      40.0               1e9               1e9
deaf_factor                       0.2               0.2               0.2
zone_height                       5.0               1e9               1e9
contested_floor                  0.25              0.25               0.5
score_fraction                    0.5               0.5               0.5
score_ends                          1                 1                 0
suite_tiebreak                      0                 0                 1
hp_tolerance                    0.001             0.001             0.001
""")

# Scout recon, light skirmish, medium assault, heavy fire support, pack command, squad command.
SUITE_RANGES = (1.5, 1.2, 1.0, 0.8, 1.0, 1.0)

EVENTS = """
    kill friendly_kill assist death paint paint_expired laser_hit projectile_hit missile_launch kinetic_fire
    smoke_launch smoke_cloud explosion ams_intercept knockdown stand_up shutdown restart legged zone_enter zone_leave
    voxel_destroyed order
""".split()


@dataclass(frozen=True)
class Preset:
    """The numbers of one game: rules by name, weapons by name, and what each class does with its buttons."""

    rules: Column
    weapons: dict[str, Column]
    buttons: dict[str, tuple[tuple[str, ...], ...]]
    ewar: str  # the class that has electronic warfare


def preset(name: str) -> Preset:
    """The game, or one of the two older ones: what the card says below its table of rules."""
    weapons = columns_of(WEAPONS)
    buttons: dict[str, tuple[tuple[str, ...], ...]] = {
        kind: tuple((weapon,) if weapon else () for weapon in row) for kind, row in BUTTONS.items()
    }
    if name != "build":
        weapons["autocannon"].stability_damage = 5.0
        buttons["medium"] = ("laser",), (), ("autocannon", "painter"), ("smoke",)
    if name == "suite":
        buttons["light"] = ("flamer",), ("laser",), ("painter",), ()
    return Preset(RULES[name], weapons, buttons, "light" if name == "suite" else "scout")
