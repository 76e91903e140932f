"""A recorded battle as pictures: mechs, fire and smoke on the map, and how the race stands.

Drawn by NumPy and Pillow alone, so that whoever can install the package can film a battle. The camera stands still for
some seconds and then cuts to where the fight is, which is easy on the eye and makes a small file.
"""

from collections.abc import Iterator
from math import ceil, cos, hypot, pi, sin
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from protege import ProtegeError
from protege.games.echelon.recordings.battle_report import TEAM_NAMES, clock, flag, mech_name
from protege.games.echelon.recordings.recording import Frame, Recording
from protege.games.echelon.recordings.scenery import CAMERA, SKY, Picture, Scenery, Values, View, nearness, view_of
from protege.games.echelon.rules import events
from protege.games.echelon.world.mechs import AUTOCANNON, BLUE, CHASSIS, FLAMER, GAUSS, MISSILE, NOBODY, TICK_S

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

Colour = tuple[int, int, int]

SMOOTH: Final = 2  # drawn so many times larger, which smooths every edge
SHOT_S: Final = 5.0  # how long a camera stands at least
MARGIN: Final = 5.0  # voxels around what a camera shows
LEAST_ACROSS: Final = 44.0  # voxels: nearer would show a fight without its surroundings
STAYS_S: Final = 1.5  # how long the last picture stays
NEWS_S: Final = 7.0  # and a kill in the list of them

TEAM_COLOURS: Final[tuple[Colour, Colour]] = ((58, 162, 255), (255, 83, 64))
INK: Final[Colour] = (233, 236, 245)
FREE: Final[Colour] = (255, 230, 30)
PAINTED: Final[Colour] = (255, 61, 240)
SHOT_COLOURS: Final = {MISSILE: (255, 210, 122), GAUSS: (191, 230, 255), AUTOCANNON: (255, 224, 138)}
SUN: Final = np.array([0.06, -0.08, 0.34])  # what a face gains by looking there
FLASH_S, BEAM_S, BLAST_S, DEATH_S = 0.12, 0.22, 0.6, 1.4  # how long each is seen

# What stands above a head, by class: the heavier, the fuller. Right and down.
SIGNS: Final = (
    ((0.0, -1.0), (1.0, 0.8), (-1.0, 0.8)),
    ((0.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)),
    tuple((0.9 * cos(turn), 0.9 * sin(turn)) for turn in np.linspace(0, 2 * pi, 16)),
    ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
)


class Box(NamedTuple):
    """A part of a body, in fractions of the width and height of its class."""

    size: tuple[float, float, float]  # forward, left, up
    middle: tuple[float, float, float]
    shade: float = 1.0


def _pair(size: tuple[float, float, float], middle: tuple[float, float, float], shade: float = 1.0) -> tuple[Box, Box]:
    forward, left, up = middle
    return Box(size, middle, shade), Box(size, (forward, -left, up), shade)


def _legs(size: tuple[float, float, float], apart: float, shade: float) -> tuple[Box, Box]:
    return _pair(size, (0.0, apart, size[2] / 2 - 0.5), shade)


BODIES: Final = (
    (  # a mast with a dish on thin legs
        *_legs((0.3, 0.14, 0.42), 0.26, 0.4),
        Box((0.6, 0.5, 0.26), (0.0, 0.0, 0.0)),
        Box((0.1, 0.1, 0.3), (-0.1, 0.0, 0.25), 0.5),
        Box((0.12, 0.8, 0.26), (0.0, 0.0, 0.4), 1.3),
    ),
    (  # a bird with raised wings
        *_legs((0.24, 0.16, 0.44), 0.26, 0.4),
        Box((0.9, 0.36, 0.26), (0.1, 0.0, 0.1)),
        *_pair((0.36, 0.3, 0.05), (-0.2, 0.36, 0.2), 0.9),
        *_pair((0.2, 0.06, 0.3), (-0.34, 0.45, 0.34), 1.2),
    ),
    (  # a man in armour with a gun for an arm
        *_legs((0.26, 0.24, 0.44), 0.2, 0.6),
        Box((0.46, 0.6, 0.32), (0.0, 0.0, 0.1)),
        *_pair((0.3, 0.2, 0.2), (0.0, 0.42, 0.16), 0.85),
        Box((0.64, 0.12, 0.1), (0.26, -0.42, 0.06), 0.45),
        Box((0.22, 0.24, 0.14), (0.1, 0.0, 0.34), 1.3),
    ),
    (  # a fortress with two racks of missiles and a long gun
        *_legs((0.34, 0.26, 0.4), 0.26, 0.6),
        Box((0.62, 0.66, 0.3), (0.0, 0.0, 0.04)),
        Box((0.26, 0.26, 0.12), (0.28, 0.0, 0.16), 1.3),
        *_pair((0.4, 0.26, 0.24), (0.0, 0.4, 0.28)),
        Box((0.9, 0.09, 0.08), (0.4, 0.0, 0.3), 0.45),
    ),
)


class Pose(NamedTuple):
    """Where a mech is and looks."""

    x: float
    y: float
    z: float
    yaw: float


def film(
    recording: Recording, *, width: int = 640, begin: float = 0.0, seconds: float = 0.0, speed: float = 1.0,
    rate: float = 15.0,
) -> Iterator[Picture]:  # fmt: skip
    """Pictures of a battle, `rate` a second, from `begin` on for some seconds of it or, with 0, to its end."""
    if not 160 <= width <= 3840:
        raise ProtegeError(f"the width of a film must be 160 to 3840 pixels; got {width}")
    if not (0.1 <= speed <= 20 and 1 <= rate <= 60):
        raise ProtegeError(f"speed must be 0.1 to 20 and rate 1 to 60; got {speed:g} and {rate:g}")
    step = recording.header["seconds_per_frame"]
    last = step * (recording.frames - 1)
    end = min(last, begin + seconds) if seconds > 0 else last
    if not 0 <= begin < end:
        raise ProtegeError(f"the battle lasts {last:.1f} s: there is nothing to film from second {begin:g} on")
    return _pictures(recording, width, np.append(np.arange(begin, end, speed / rate), end), round(STAYS_S * rate))


def _pictures(recording: Recording, width: int, times: Values, stays: int) -> Iterator[Picture]:
    size = SMOOTH * (width // 2 * 2), SMOOTH * (width * 9 // 32 * 2)  # both even, as films need it
    try:
        painter = Painter(recording, size)
    except ImportError as missing:
        raise ProtegeError(f"filming needs {missing.name}: pip install 'protege[viewer]'") from missing
    views = choose_views(recording, times[0], times[-1], size)
    grid, number, scenery = recording.materials(0), 0, None
    for time in times:
        changed = [np.zeros(0, np.int64)]
        while number < painter.number(time):
            number += 1
            changes = recording.frame(number).changes
            grid.flat[changes["cell"]] = changes["after"]
            changed.append(changes["cell"])
        view = [view for start, view in views if start <= time][-1]
        cells = np.concatenate(changed)
        if scenery is None or scenery.view != view:
            scenery = Scenery(view, grid)
        elif len(cells):
            scenery.update(cells)
        yield (picture := painter.paint(scenery, time))
    for _ in range(stays):
        yield picture


def choose_views(recording: Recording, begin: float, end: float, size: tuple[int, int]) -> list[tuple[float, View]]:
    """When the camera cuts to what: it shows whoever is alive, and the zone, as near as that allows."""
    step, shots = recording.header["seconds_per_frame"], max(1, ceil((end - begin) / SHOT_S))
    found: list[tuple[float, View]] = []
    for number in range(shots):
        first, last = (begin + (end - begin) * part / shots for part in (number, number + 1))
        points = [recording.header["zone"][:2]]
        for index in range(int(first / step), min(int(last / step) + 1, recording.frames), 4):
            mechs = recording.frame(index).mechs
            living = mechs[flag(mechs, "alive")]
            points += np.stack([living["x"], living["y"]], 1).tolist()
        view = view_of(np.array(points), *size, margin=MARGIN, least_across=LEAST_ACROSS)
        if not found or not _alike(view, found[-1][1]):
            found.append((first, view))
    return found


def _alike(one: View, two: View) -> bool:
    return hypot(one.x - two.x, one.y - two.y) < 0.12 * one.across and 0.8 < one.across / two.across < 1.25


class Painter:
    """Draws what is on the map at a time, and the figures above it."""

    def __init__(self, recording: Recording, size: tuple[int, int]):
        from PIL import ImageFont

        self.recording, self.header, self.size = recording, recording.header, size
        self.step = float(self.header["seconds_per_frame"])
        frames, _ = recording.everything()
        self.events = np.sort(frames["events"], order="tick", kind="stable")
        self.small, self.large = (ImageFont.load_default(size[1] * fraction) for fraction in (0.034, 0.052))

    def number(self, time: float) -> int:
        """The frame at or before a time."""
        return min(int(time / self.step + 1e-9), self.recording.frames - 1)

    def paint(self, scenery: Scenery, time: float) -> Picture:
        """The picture at a time, in its final size."""
        from PIL import Image, ImageDraw

        number = self.number(time)
        frame = self.recording.frame(number)
        later = self.recording.frame(min(number + 1, self.recording.frames - 1))
        poses = _between(frame, later, time / self.step - number)
        dead = set(self._recent(time, np.inf, events.DEATH)["who"].tolist())
        order = [i for i in np.argsort([nearness(*pose[:3]) for pose in poses]).tolist() if i not in dead]
        image = Image.fromarray(scenery.picture)
        draw = ImageDraw.Draw(image, "RGBA")
        self._zone(draw, scenery.view, frame)
        for i in order:
            self._mech(image, scenery, frame, i, poses[i])
        self._shots(draw, scenery.view, frame, time - number * self.step)
        self._clouds(draw, scenery.view, frame)
        self._events(draw, scenery.view, poses, time)
        for i in order:
            self._mark(draw, scenery.view, frame, i, poses[i])
        self._figures(draw, frame, time)
        return np.asarray(image.reduce(SMOOTH))

    def _recent(self, time: float, seconds: float, *kinds: int) -> Any:
        ticks = self.events["tick"] * TICK_S
        return self.events[(ticks <= time) & (ticks > time - seconds) & np.isin(self.events["kind"], kinds)]

    def _team_colour(self, i: int) -> Colour:
        return TEAM_COLOURS[self.header["mechs"][i]["team"]]

    def _zone(self, draw: "ImageDraw", view: View, frame: Frame) -> None:
        x, y, radius = self.header["zone"]
        turns = np.linspace(0, 2 * pi, 60)
        ring = list(zip(*view.place(x + radius * np.cos(turns), y + radius * np.sin(turns), 0.0)))
        _, colour = _holder(frame)
        draw.polygon(ring, (*colour, 56))
        draw.line(ring, (*colour, 230), max(2, int(0.3 * view.scale)))

    def _mech(self, image: "Image", scenery: Scenery, frame: Frame, i: int, pose: Pose) -> None:
        """A ring on the ground and a body of boxes; where the map stands before them, they shine through faintly."""
        from PIL import Image, ImageDraw

        view, chassis, mech = scenery.view, CHASSIS[self.header["mechs"][i]["kind"]], frame.mechs[i]
        column, row = (int(value) for value in view.place(*pose[:3]))
        reach = int(1.25 * max(chassis.width, chassis.height) * view.scale)
        left, top = column - reach, row - reach
        layer = Image.new("RGBA", (2 * reach, 2 * reach))
        draw = ImageDraw.Draw(layer)
        tint = np.array(self._team_colour(i)) * (0.45 if flag(frame.mechs, "shut")[i] else 1.0)
        x, y = view.place(pose.x, pose.y, pose.z - chassis.height / 2)
        x, y, wide = x - left, y - top, 0.75 * chassis.width * view.scale
        tall = wide * CAMERA[2]
        draw.ellipse((x - wide, y - tall, x + wide, y + tall), outline=_bytes(tint), width=3)
        for corners, light in _faces(self.header["mechs"][i]["kind"], pose, lying=mech["fallen"] > 0):
            points = [(a - left, b - top) for a, b in zip(*view.place(*corners))]
            draw.polygon(points, _bytes(tint * light))
        rows = np.clip(np.arange(top, top + 2 * reach), 0, view.height - 1)
        columns = np.clip(np.arange(left, left + 2 * reach), 0, view.width - 1)
        hidden = scenery.near[np.ix_(rows, columns)] > nearness(*pose[:3]) + 0.6 * chassis.width
        mask = np.asarray(layer.getchannel("A")) * np.where(hidden, 0.3, 1.0)
        image.paste(layer, (left, top), Image.fromarray(mask.astype(np.uint8)))

    def _mark(self, draw: "ImageDraw", view: View, frame: Frame, i: int, pose: Pose) -> None:
        """Class, health and paint above a head."""
        kind, mech = self.header["mechs"][i]["kind"], frame.mechs[i]
        x, y = view.place(pose.x, pose.y, pose.z + 0.62 * CHASSIS[kind].height)
        r = 0.017 * self.size[1]
        y -= 2.4 * r
        draw.polygon([(x + r * right, y + r * down) for right, down in SIGNS[kind]], self._team_colour(i), SKY)
        fraction = max(0.0, float(mech["hp"]) / CHASSIS[kind].hp)
        health = (90, 235, 128) if fraction > 0.5 else (255, 209, 64) if fraction > 0.25 else (255, 90, 77)
        draw.rectangle((x - 1.5 * r, y + 1.3 * r, x + 1.5 * r, y + 1.8 * r), SKY)
        draw.rectangle((x - 1.5 * r, y + 1.3 * r, x + (3 * fraction - 1.5) * r, y + 1.8 * r), health)
        if mech["painted"]:
            draw.rectangle((x - 1.6 * r, y - 1.5 * r, x + 1.6 * r, y + 2.1 * r), outline=PAINTED, width=3)

    def _shots(self, draw: "ImageDraw", view: View, frame: Frame, past: float) -> None:
        for shot in frame.shots:
            speed = np.array([shot["vx"], shot["vy"], shot["vz"]], np.float64)
            at = np.array([shot["x"], shot["y"], shot["z"]], np.float64) + past * speed
            if shot["weapon"] == MISSILE:
                draw.line([view.place(*(at - 0.35 * speed)), view.place(*at)], (190, 195, 205, 120), 6)
            colour = SHOT_COLOURS.get(int(shot["weapon"]), (216, 221, 230))
            draw.line([view.place(*(at - 0.06 * speed)), view.place(*at)], colour, 5)

    def _clouds(self, draw: "ImageDraw", view: View, frame: Frame) -> None:
        for cloud in frame.clouds:
            radius, strength = float(cloud["radius"]), min(1.0, float(cloud["left"]) / 24)
            r = 0.55 * radius * view.scale
            for part in range(7):
                away = 0.5 * radius if part else 0.0
                x, y = cloud["x"] + away * cos(part * 1.05), cloud["y"] + away * sin(part * 1.05)
                px, py = view.place(x, y, float(cloud["z"]) + 0.3 * (part % 3))
                draw.ellipse((px - r, py - 0.8 * r, px + r, py + 0.8 * r), (196, 201, 211, int(84 * strength)))

    def _events(self, draw: "ImageDraw", view: View, poses: list[Pose], time: float) -> None:
        """Beams, flashes and bursts of the last moments."""
        for event in self._recent(time, BEAM_S, events.LASER_HIT, events.PAINT):
            beam = (255, 138, 42) if event["weapon"] == FLAMER else (89, 255, 156)
            colour = PAINTED if event["kind"] == events.PAINT else beam
            ends = [view.place(*poses[event[end]][:3]) for end in ("who", "whom")]
            draw.line(ends, (*colour, 70), 14)
            draw.line(ends, colour, 4)
        for event in self._recent(time, FLASH_S, events.KINETIC_FIRE, events.MISSILE_LAUNCH, events.PROJECTILE_HIT):
            self._glow(draw, view, event, 0.55, (255, 214, 130), 1 - (time - event["tick"] * TICK_S) / FLASH_S)
        for event in self._recent(time, BLAST_S, events.EXPLOSION):
            age = time - event["tick"] * TICK_S
            radius = max(1.2, float(event["amount"])) * (0.4 + age)
            self._glow(draw, view, event, radius, (255, 140, 50), 1 - age / BLAST_S)
        for event in self._recent(time, DEATH_S, events.DEATH):
            age = time - event["tick"] * TICK_S
            colour = (255, 120, 40) if age < 0.5 else (90, 90, 96)
            self._glow(draw, view, event, 1.2 + 2.6 * age, colour, 1 - age / DEATH_S)

    def _glow(self, draw: "ImageDraw", view: View, at: Any, radius: float, colour: Colour, strength: float) -> None:
        x, y = view.place(float(at["x"]), float(at["y"]), float(at["z"]))
        for fraction, alpha in ((1.0, 70), (0.7, 110), (0.4, 200)):
            r = fraction * radius * view.scale
            draw.ellipse((x - r, y - r, x + r, y + r), (*colour, int(alpha * strength)))

    def _figures(self, draw: "ImageDraw", frame: Frame, time: float) -> None:
        """The race of the scores, the living, the clock, the zone."""
        width, height = self.size
        draw.rectangle((0, 0, width, 0.125 * height), (*SKY, 190))
        goal = self.header.get("score_to_win", 0.5 * self.header["length"] * self.step)
        bar, top = 0.36 * width, 0.02 * height
        for team, player in enumerate(self.header["players"]):
            score = float(frame.now["score"][team])
            # Blue stands on the left and runs to the right; red is its mirror.
            outer, way = (0.02 * width, 1) if team == BLUE else (0.98 * width, -1)
            inner = outer + way * bar
            text = f"{player}   {frame.now['living'][team]} alive"
            draw.text((outer, top), text, TEAM_COLOURS[team], self.small, "la" if team == BLUE else "ra")
            draw.text((inner, 0.6 * top), f"{score:.1f}", INK, self.large, "ra" if team == BLUE else "la")
            filled = outer + way * bar * min(1.0, score / goal)
            for end, tint in ((inner, (255, 255, 255, 40)), (filled, (*TEAM_COLOURS[team], 255))):
                draw.rectangle((min(outer, end), 0.088 * height, max(outer, end), 0.106 * height), tint)
        draw.text((width / 2, 0.6 * top), clock(time)[:-2], INK, self.large, "ma")
        state, colour = _holder(frame)
        draw.text((width / 2, 0.075 * height), state, colour, self.small, "ma")
        self._news(draw, time)

    def _news(self, draw: "ImageDraw", time: float) -> None:
        """The last kills, and at the end who has won."""
        width, height = self.size
        kills = self._recent(time, NEWS_S, events.KILL, events.FRIENDLY_KILL)[-4:]
        for line, kill in enumerate(kills[::-1]):
            who, whom = int(kill["who"]), int(kill["whom"])
            place = 0.02 * width, (0.955 - 0.045 * line) * height
            text = f"{mech_name(self.header, who)} kills {mech_name(self.header, whom)}"
            draw.text(place, text, self._team_colour(who), self.small, "lm", stroke_width=2, stroke_fill=SKY)
        if self.number(time) == self.recording.frames - 1:
            winner = self.header["result"]["winner"]
            text, colour = ("a draw", INK) if winner == NOBODY else (f"{TEAM_NAMES[winner]} wins", TEAM_COLOURS[winner])
            draw.text((width / 2, 0.16 * height), text, colour, self.large, "ma", stroke_width=3, stroke_fill=SKY)


def _holder(frame: Frame) -> tuple[str, Colour]:
    """Whose the zone is."""
    blue, red = frame.now["tonnage"]
    if blue > 0 and red > 0:
        return "contested", (255, 255, 255)
    team = int(red > 0)
    return (f"{TEAM_NAMES[team]} zone", TEAM_COLOURS[team]) if blue + red > 0 else ("zone empty", FREE)


def _bytes(colour: Values) -> Colour:
    red, green, blue = np.clip(colour, 0, 255).astype(int).tolist()
    return red, green, blue


def _between(frame: Frame, later: Frame, part: float) -> list[Pose]:
    a, b = frame.mechs, later.mechs
    turn = (b["yaw"] - a["yaw"] + pi) % (2 * pi) - pi
    places = [(a[axis] + part * (b[axis] - a[axis])).tolist() for axis in "xyz"]
    return [Pose(*pose) for pose in zip(*places, (a["yaw"] + part * turn).tolist())]


def _faces(kind: int, pose: Pose, lying: bool) -> Iterator[tuple[Values, float]]:
    """The faces of a body that look at the camera, the farther first: corners (3, 4), and how bright."""
    width, height = CHASSIS[kind].width, CHASSIS[kind].height
    middle = np.array(pose[:3])
    forward, left = np.array([cos(pose.yaw), sin(pose.yaw), 0.0]), np.array([-sin(pose.yaw), cos(pose.yaw), 0.0])
    up = np.array([0.0, 0.0, 1.0])
    if lying:  # on its back
        forward, up, middle = up, -forward, middle - 0.25 * height * up
    found: list[tuple[float, Values, float]] = []
    for box in BODIES[kind]:
        ways = width * forward, width * left, height * up
        centre = middle + sum(fraction * way for fraction, way in zip(box.middle, ways))
        sides = [size / 2 * way for size, way in zip(box.size, ways)]
        for n, side in enumerate(sides):
            out = side if side @ CAMERA > 0 else -side
            one, two = sides[n - 2], sides[n - 1]
            corners = np.stack([centre + out + a * one + b * two for a, b in ((1, 1), (1, -1), (-1, -1), (-1, 1))], 1)
            light = box.shade * (0.72 + float(out @ SUN / np.linalg.norm(out)))
            found.append((float(centre @ CAMERA), corners, light))
    for _, corners, light in sorted(found, key=lambda face: face[0]):
        yield corners, light
