"""Pictures: every kind of object shows, and nothing leaves the frame."""

import numpy as np
import pytest

from protege import ProtegeError
from protege.games.tempest.rules import levels, ram
from protege.games.tempest.task import drawing

RED, YELLOW, BLUE = drawing.RED, drawing.YELLOW, drawing.BLUE


def game(level=1, lane=11):
    """A game at rest on a level: tube, camera, player, figures, and nothing else."""
    row = np.zeros(ram.ROW_BYTES, np.uint8)
    shape = (level - 1) % 16
    row[ram.TUBE_X : ram.TUBE_X + 48] = levels.TUBE_POINTS[shape]
    row[ram.OPEN], row[ram.TUBE] = levels.TUBE_OPEN[shape], levels.TUBE_NUMBER[shape]
    row[ram.CAMERA_HIGH], row[ram.CAMERA_LOW] = 0xFF, levels.TUBE_REST[shape]
    row[ram.CAMERA_REST] = levels.TUBE_REST[shape]
    row[ram.LEVEL_INDEX] = level - 1
    row[ram.GAME_STATE], row[ram.GAME_MODE] = ram.PLAYING, ram.REAL_GAME | ram.IN_PROGRESS
    row[ram.LIVES] = 3
    row[ram.PLAYER_LANE], row[ram.PLAYER_EDGE] = lane, (lane + 1) & 15
    row[ram.PLAYER_POSITION], row[ram.PLAYER_DEPTH] = 16 * lane + 7, ram.RIM
    row[ram.PULSE_PHASE], row[ram.PULSE_DEPTH] = 0xE0, 0xA0
    return row


def changed(row, writes):
    row = row.copy()
    for address, value in writes.items():
        row[address] = value
    return row


def with_enemy(row, kind, lane, depth=0x40, edge=None, bits=0, info=0):
    edge = (lane + 1) & 15 if edge is None else edge
    enemy = {ram.ENEMY_TYPE: kind | bits, ram.ENEMY_LANE: lane, ram.ENEMY_DEPTH: depth}
    return changed(row, enemy | {ram.ENEMY_EDGE: edge, ram.ENEMY_INFO: info})


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("segments", "colours", "brightness"))


def lines_of(picture, colour):
    return picture.segments[(picture.colours == colour).all(axis=1)]


NOTHING = game()
DYING = changed(NOTHING, {ram.PLAYER_EDGE: ram.BLOWN_UP})
FLIPPER = with_enemy(NOTHING, ram.FLIPPER, 3)
TANKER = with_enemy(NOTHING, ram.TANKER, 3)
PULSAR = with_enemy(NOTHING, ram.PULSAR, 3)
FUSEBALL = with_enemy(NOTHING, ram.FUSEBALL, 3)
BLAST = changed(NOTHING, {ram.BLAST_LANE: 3, ram.BLAST_DEPTH: 0x40, ram.BLAST_PHASE: 6})
PAIRS = {
    "claw": (NOTHING, DYING),
    "grabbed claw": (DYING, changed(DYING, {ram.PLAYER_EDGE: ram.GRABBED})),
    "lane": (NOTHING, game(lane=12)),
    "place within the lane": (NOTHING, changed(NOTHING, {ram.PLAYER_POSITION: 16 * 11 + 2})),
    "player shot": (NOTHING, changed(NOTHING, {ram.PSHOT_LANE + 7: 3, ram.PSHOT_DEPTH + 7: 0x40})),
    "enemy shot": (NOTHING, changed(NOTHING, {ram.ESHOT_LANE + 3: 3, ram.ESHOT_DEPTH + 3: 0x40})),
    "flipper": (NOTHING, FLIPPER),
    "pulsar": (FLIPPER, PULSAR),
    "pulse": (PULSAR, changed(PULSAR, {ram.PULSE_PHASE: 0xC0})),
    "live pulse": (changed(PULSAR, {ram.PULSE_PHASE: 0xFF}), changed(PULSAR, {ram.PULSE_PHASE: 0x03})),
    "tanker": (FLIPPER, TANKER),
    "flippers in a tanker": (TANKER, with_enemy(NOTHING, ram.TANKER, 3, info=1)),
    "pulsars in a tanker": (with_enemy(NOTHING, ram.TANKER, 3, info=1), with_enemy(NOTHING, ram.TANKER, 3, info=2)),
    "fuseballs in a tanker": (with_enemy(NOTHING, ram.TANKER, 3, info=2), with_enemy(NOTHING, ram.TANKER, 3, info=3)),
    "spiker": (FLIPPER, with_enemy(NOTHING, ram.SPIKER, 3)),
    "fuseball": (FLIPPER, FUSEBALL),
    "leap": (FUSEBALL, with_enemy(NOTHING, ram.FUSEBALL, 3, edge=0x84, bits=ram.BETWEEN_LANES)),
    "wiggle": (FUSEBALL, changed(FUSEBALL, {ram.TICK: 1})),
    "depth fraction": (FLIPPER, changed(FLIPPER, {ram.ENEMY_FRACTION: 0x80})),
    "nymph": (NOTHING, changed(NOTHING, {ram.NYMPH_TIMER + 63: 9})),
    "turning nymph": tuple(changed(NOTHING, {ram.NYMPH_TIMER: 90, ram.NYMPH_LANE: lane}) for lane in (4, 5)),
    "spike": (NOTHING, changed(NOTHING, {ram.SPIKE + 15: 0xC0})),
    "zap": (NOTHING, changed(NOTHING, {ram.ZAP_TIMER: 3})),
    "blast": (NOTHING, BLAST),
    "score": (NOTHING, changed(NOTHING, {ram.SCORE_MID: 0x12})),
    "life": (NOTHING, changed(NOTHING, {ram.LIVES: 4})),
    "level": (NOTHING, changed(NOTHING, {ram.LEVEL_INDEX: 4})),
    "best score": (NOTHING, changed(NOTHING, {ram.BEST_SCORES + 22: 0x99})),
    "camera": (NOTHING, changed(NOTHING, {ram.CAMERA_HIGH: 0xFE})),
    "stars": (NOTHING, changed(NOTHING, {ram.GAME_STATE: ram.ZOOM})),
    "game over": (NOTHING, changed(NOTHING, {ram.GAME_STATE: ram.GAME_OVER})),
    "avoid spikes": (
        changed(NOTHING, {ram.GAME_STATE: ram.DELAY, ram.NEXT_STATE: ram.ZOOM}),
        changed(NOTHING, {ram.GAME_STATE: ram.DELAY, ram.NEXT_STATE: ram.ZOOM, ram.SPIKE_WARNING: 0x80}),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_every_kind_of_object_changes_lines_and_pixels(name):
    before, after = PAIRS[name]
    assert not same(drawing.vectors(before), drawing.vectors(after))
    assert (drawing.render(before, 240, 240) != drawing.render(after, 240, 240)).any()


def test_a_locked_superzapper_does_not_flash():
    assert same(drawing.vectors(NOTHING), drawing.vectors(changed(NOTHING, {ram.ZAP_TIMER: 0xFF})))


def test_kinds_of_explosion_and_their_phases_look_different():
    pictures = [
        drawing.vectors(changed(BLAST, {ram.BLAST_TYPE: kind, ram.BLAST_PHASE: phase}))
        for kind in range(6)
        for phase in (3, 9, 15)
    ]
    for i, picture in enumerate(pictures):
        assert not any(same(picture, other) for other in pictures[:i])


STATES = {
    "title": {ram.GAME_STATE: ram.LOGO},
    "level select": {ram.GAME_STATE: ram.LEVEL_SELECT, ram.MAX_CHOICE: 27, ram.PLAYER_LANE: 14},
    "another choice": {ram.GAME_STATE: ram.LEVEL_SELECT, ram.MAX_CHOICE: 27, ram.PLAYER_LANE: 15},
    "seconds left": {ram.GAME_STATE: ram.LEVEL_SELECT, ram.MAX_CHOICE: 27, ram.PLAYER_LANE: 15, ram.COUNTDOWN: 9},
    "table": {ram.GAME_STATE: ram.HIGH_SCORE_TABLE},
    "initials": {ram.GAME_STATE: ram.ENTER_INITIALS, ram.ENTRY_RANK: 3, ram.LETTERS_LEFT: 2},
    "fireworks": {ram.GAME_STATE: ram.HIGH_SCORE_BOOM, ram.PARTICLES: 0x90, ram.PARTICLES + 64: 0x70},
    "attract": {ram.GAME_MODE: 0},
}


def test_every_screen_is_its_own():
    pictures = [drawing.vectors(changed(NOTHING, writes)) for writes in STATES.values()]
    for i, picture in enumerate(pictures):
        assert len(picture.segments) > 50
        assert not any(same(picture, other) for other in pictures[:i])


def test_a_delay_shows_the_screen_it_follows():
    table = drawing.vectors(changed(NOTHING, {ram.GAME_STATE: ram.HIGH_SCORE_TABLE}))
    waiting = drawing.vectors(changed(NOTHING, {ram.GAME_STATE: ram.DELAY, ram.NEXT_STATE: ram.LOGO}))
    playing = drawing.vectors(changed(NOTHING, {ram.GAME_STATE: ram.DELAY, ram.NEXT_STATE: ram.PLAYING}))
    assert same(waiting, table)
    assert same(playing, drawing.vectors(NOTHING))


def test_the_score_goes_on_where_the_machine_wraps():
    # The machine shows 000150; the margin knows 1,000,100 points of play and a start bonus of 50: one digit more.
    six = changed(NOTHING, {ram.SCORE_LOW: 0x50, ram.SCORE_MID: 0x01})
    seven = six.copy()
    seven[ram.SCORE : ram.SCORE + 8] = np.frombuffer((1_000_100).to_bytes(8, "little"), np.uint8)
    seven[ram.START_BONUS] = 50
    assert len(drawing.vectors(seven).segments) > len(drawing.vectors(six).segments)
    bare = drawing.vectors(six[: ram.RAM_BYTES])  # a real machine has no margin
    assert same(bare, drawing.vectors(six))


@pytest.mark.parametrize("level", range(1, 17))
def test_every_tube_fills_the_picture_and_stays_inside(level):
    row = changed(game(level), {ram.PLAYER_EDGE: ram.BLOWN_UP, ram.LIVES: 0})
    tube = lines_of(drawing.vectors(row), BLUE)[: 16 + 2 * (15 if row[ram.OPEN] else 16)]
    spokes, rim, far = tube[:16], tube[16 : (len(tube) + 16) // 2], tube[(len(tube) + 16) // 2 :]
    assert np.abs(tube).max() < 0.9
    assert np.ptp(rim[:, ::2]) > 1.5 or np.ptp(rim[:, 1::2]) > 1.5
    assert np.ptp(far[:, ::2]) > 0.1
    assert np.allclose(spokes[: len(rim), :2], rim[:, :2], atol=1e-5)
    assert np.allclose(spokes[: len(far), 2:], far[:, :2], atol=1e-5)


@pytest.mark.parametrize("level", range(1, 17))
def test_the_claw_is_inside_the_picture_in_every_lane(level):
    for lane in range(15 if game(level)[ram.OPEN] else 16):
        for fine in (0, 7, 15):
            row = changed(game(level, lane), {ram.PLAYER_POSITION: 16 * lane + fine})
            assert np.abs(lines_of(drawing.vectors(row), YELLOW)).max() < 1.0


@pytest.mark.parametrize("level", range(1, 17))
def test_a_flip_begins_in_one_lane_and_ends_in_the_other(level):
    row = game(level)
    first, last = (1, 14) if row[ram.OPEN] else (0, 15)
    angle = row[ram.TUBE_ANGLE : ram.TUBE_ANGLE + 16].astype(int)

    def body(kind_of_row):
        lines = lines_of(drawing.vectors(kind_of_row), RED)
        return np.array(sorted(np.round(np.concatenate([lines[:, :2], lines[:, 2:]]), 3).tolist()))

    for pivot in range(first, last + 1):
        lying = body(with_enemy(row, ram.FLIPPER, (pivot - 1) & 15))
        begin = 0x80 + ((angle[pivot - 1] + 8) & 15)
        rising = with_enemy(row, ram.FLIPPER, pivot, edge=begin, bits=ram.BETWEEN_LANES | ram.INCREASING)
        assert np.allclose(body(rising), lying, atol=0.02)
        lying = body(with_enemy(row, ram.FLIPPER, pivot))
        falling = with_enemy(row, ram.FLIPPER, pivot, edge=0x80 + angle[pivot], bits=ram.BETWEEN_LANES)
        assert np.allclose(body(falling), lying, atol=0.02)


def test_what_is_behind_the_eye_is_not_drawn():
    # Half way down the tube the camera has passed the rim: of the tube's 48 lines the rim's 16 are gone.
    row = changed(game(), {ram.PLAYER_EDGE: ram.BLOWN_UP, ram.LIVES: 0})
    deep = changed(row, {ram.CAMERA_HIGH: 0x00, ram.CAMERA_LOW: 0x60})
    assert len(lines_of(drawing.vectors(row), BLUE)) - len(lines_of(drawing.vectors(deep), BLUE)) == 16


def test_the_invisible_tube_is_faint_but_there():
    shown, hidden = drawing.vectors(game(1)), drawing.vectors(game(65))
    assert 0 < hidden.brightness[:10].max() < 0.3 * shown.brightness[:10].max()


def random_rows(count):
    rng = np.random.default_rng(5)
    states = (ram.PLAYING, ram.ZOOM, ram.ZOOM_IN, ram.LEVEL_SELECT, ram.HIGH_SCORE_TABLE, ram.ENTER_INITIALS, ram.LOGO)
    for i in range(count):
        row = rng.integers(0, 256, ram.ROW_BYTES, np.uint8)
        if i % 2:
            row[ram.GAME_STATE] = states[i // 2 % len(states)]
        if i % 3 == 0:  # a camera near the tube, or most of it is a speck or behind the eye
            row[ram.CAMERA_HIGH] = rng.choice([0xFF, 0x00])
        yield row


def test_random_bytes_never_leave_the_frame():
    for row in random_rows(400):
        picture = drawing.vectors(row)
        assert picture.segments.dtype == np.float32 and picture.segments.shape == (len(picture.brightness), 4)
        assert picture.colours.dtype == np.uint8 and picture.colours.shape == (len(picture.brightness), 3)
        assert np.abs(picture.segments).max() <= 1.0
        assert np.isfinite(picture.brightness).all() and (picture.brightness >= 0).all()


def test_random_bytes_never_write_beside_the_pixels():
    guarded = np.full((65, 93, 3), 77, np.uint8)
    inner = guarded[9:-9, 11:-11]
    for row in random_rows(200):
        drawing.rasterise(drawing.vectors(row), inner)
    inner[:] = 77
    assert (guarded == 77).all()


def test_the_same_bytes_give_the_same_picture():
    for row in random_rows(20):
        before = row.copy()
        assert np.array_equal(drawing.render(row, 160, 120), drawing.render(row.copy(), 160, 120))
        assert np.array_equal(row, before)


def plain_raster(picture, width, height):
    """Every line at every pixel: the twin of the compiled code, at its smallest radii."""
    core, glow = 1.3, 3.5
    y, x = np.mgrid[:height, :width].astype(np.float64)
    light = np.zeros((height, width, 3))
    half = min(width, height) / 2

    def ends(along, length, radius):
        total = -np.ones_like(along)
        for t in (along, length - along):
            share = np.clip(0.5 + 0.5 * t / radius, 0, 1)
            total += share * share * (3 - 2 * share)
        return np.maximum(total, 0)

    for (x0, y0, x1, y1), colour, bright in zip(picture.segments.astype(float), picture.colours, picture.brightness):
        x0, x1 = ((width - 1) / 2 + half * v for v in (x0, x1))
        y0, y1 = ((height - 1) / 2 - half * v for v in (y0, y1))
        if np.hypot(x1 - x0, y1 - y0) < 1.5:
            x0, x1, y1 = x0 - 0.75, x0 + 0.75, y0
        length = np.hypot(x1 - x0, y1 - y0)
        tx, ty = (x1 - x0) / length, (y1 - y0) / length
        beside, along = (x - x0) * ty - (y - y0) * tx, (x - x0) * tx + (y - y0) * ty
        for radius, strength in ((core, 1.0), (glow, 0.22)):
            value = strength * np.maximum(0, 1 - beside**2 / radius**2) ** 2 * ends(along, length, radius)
            light += float(bright) * value[..., None] * colour
    light += 0.35 * np.maximum(0, light.max(axis=2, keepdims=True) - 255)
    return np.minimum(255, light)


def test_pixels_equal_those_of_plain_arithmetic():
    for row in (NOTHING, PULSAR, FUSEBALL, *random_rows(6)):
        picture = drawing.vectors(row)
        pixels = np.empty((66, 91, 3), np.uint8)
        drawing.rasterise(picture, pixels)
        assert np.abs(pixels - plain_raster(picture, 91, 66)).max() <= 1.01  # bytes are cut off, not rounded


def test_the_square_lies_in_the_middle_of_a_wide_picture():
    wide = drawing.render(NOTHING, 300, 200)
    assert wide.shape == (200, 300, 3)
    assert not wide[:, :45].any() and not wide[:, -45:].any()
    assert np.array_equal(wide[:, 50:250], drawing.render(NOTHING, 200, 200))


def test_bad_sizes_are_named():
    with pytest.raises(ProtegeError, match="16 to 8192 pixels; got 0 x 480"):
        drawing.render(NOTHING, width=0)
    with pytest.raises(ProtegeError, match=r"at least 2048; got an array \(100,\)"):
        drawing.vectors(np.zeros(100, np.uint8))


def test_attention_is_a_line_from_the_rim_of_a_lane_to_the_enemy_it_looks_at():
    row = with_enemy(game(lane=11), ram.FLIPPER, 3)
    weights = np.zeros((ram.LANE_COUNT, ram.ENEMY_COUNT), np.float32)
    weights[5, 0], weights[11, 0], weights[8, 1] = 0.75, 0.25, 1.0  # nobody is in slot 1
    seen = drawing.gaze(row, weights)
    assert len(lines_of(seen, YELLOW)) == 1  # the player's own
    assert seen.brightness[1:].tolist() == pytest.approx([0.75, 0.25])
    enemy = lines_of(drawing.vectors(row), RED).reshape(-1, 2).mean(axis=0)
    assert np.abs(seen.segments[1:, 2:] - enemy).max() < 0.03
    yellow = lines_of(drawing.vectors(row), YELLOW).reshape(-1, 2)  # the claw, and far from it the lives that are left
    claw = yellow[yellow[:, 1] < -0.5].mean(axis=0)
    assert np.abs(lines_of(seen, YELLOW)[0, :2] - claw).max() < 0.1
