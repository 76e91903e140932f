"""The slow reference's parts of a tick in which hits take effect: damage, balance, paint, death, wrecks, shutdown."""

from math import ceil, floor

from protege.games.echelon.world.mechs import AIR, DEBRIS, DIRT, NOBODY, PAINTER, SOLID_DEBRIS
from tests.games.echelon.rules.reference_fight import end_paint
from tests.games.echelon.rules.reference_state import FOR_WRECK, LAYERS, TOUCH, Battle, Hit, Mech, length, ticks

# --- 5. hits ---------------------------------------------------------------------------------------------------------


def apply_hits(battle: Battle) -> None:
    dead = []
    for mech in battle.living():
        strongest = strongest_hit(battle, mech)
        if strongest:
            feel(mech, strongest)
        lose_hp(battle, mech, strongest)
        if mech.hp > 0:
            suffer(battle, mech, strongest)
        else:
            die(battle, mech, strongest)
            dead.append(mech)
        mech.burn, mech.hits, mech.painters = 0.0, [], []
    stamp_wrecks(battle, dead)


def strongest_hit(battle: Battle, mech: Mech) -> Hit | None:
    def strength(hit: Hit) -> tuple[float, bool, int]:
        shooter = battle.mechs[hit.who]
        return -hit.body, shooter.team == mech.team, shooter.rank

    return min(mech.hits, key=strength, default=None)


def feel(mech: Mech, hit: Hit) -> None:
    mech.hit = True
    distance = length(*hit.travel)
    back = -1 / distance if distance > 0 else 0.0
    mech.hurt = hit.travel[0] * back, hit.travel[1] * back, hit.travel[2] * back


def lose_hp(battle: Battle, mech: Mech, strongest: Hit | None) -> None:
    by_attacker: dict[int, float] = {}
    for hit in mech.hits:
        by_attacker[hit.who] = by_attacker.get(hit.who, 0.0) + hit.body
    before = mech.hp
    total = mech.burn + sum(by_attacker.values())
    lost = min(total, before)

    def part(amount: float) -> float:
        return amount if total <= before else floor(amount * (before / total) * 1024) / 1024

    mech.hp -= lost
    mech.taken += lost
    parts = {who: part(amount) for who, amount in by_attacker.items()}
    if strongest:
        parts[strongest.who] += lost - part(mech.burn) - sum(parts.values())
    for who, amount in parts.items():
        attacker = battle.mechs[who]
        battle.ledger[who][mech.index] += amount
        if attacker.team == mech.team:
            attacker.friendly += amount
        else:
            attacker.dealt += amount


def suffer(battle: Battle, mech: Mech, strongest: Hit | None) -> None:
    rules = battle.rules
    by, weapon = (strongest.who, strongest.weapon) if strongest else (NOBODY, -1)
    mech.heat += sum(hit.heat for hit in mech.hits)
    if any(hit.suppresses for hit in mech.hits):
        mech.suppressed = ticks(rules.suppress_s, rules)
    if mech.painted > 0:
        mech.paint_damage += sum(hit.boosted for hit in mech.hits)
    mech.leg_hp = max(mech.leg_hp - sum(hit.leg for hit in mech.hits), 0.0)
    if mech.leg_hp == 0 and not mech.legged:
        mech.legged = True
        battle.emit("legged", by, mech.place, mech.index, weapon)
    if mech.fallen == 0:
        shaken = mech.stability - sum(hit.stability for hit in mech.hits)
        mech.stability = min(shaken, battle.stability_limit(mech))
        if mech.stability <= 0:
            mech.stability, mech.fallen = 0.0, ticks(rules.knockdown_s, rules)
            mech.vx = mech.vy = mech.vz = 0.0
            battle.emit("knockdown", by, mech.place, mech.index, weapon)
    if mech.painters:
        painter = max(mech.painters)
        if mech.painted > 0 and mech.painter != painter:
            end_paint(battle, mech)
        mech.painted, mech.painter = ticks(rules.paint_s, rules), painter
        battle.emit("paint", painter, mech.place, mech.index, PAINTER)


def die(battle: Battle, mech: Mech, strongest: Hit | None) -> None:
    by, weapon = (strongest.who, strongest.weapon) if strongest else (NOBODY, -1)
    battle.emit("death", mech.index, mech.place, by, weapon)
    if strongest:
        friend = battle.mechs[by].team == mech.team
        battle.emit("friendly_kill" if friend else "kill", by, mech.place, mech.index, weapon)
        if not friend:
            note_assists(battle, mech, by)
    if mech.painted > 0:
        mech.paint_damage += sum(hit.boosted for hit in mech.hits)
        end_paint(battle, mech)
    mech.alive = mech.shut = mech.grounded = False
    mech.fallen = mech.suppressed = mech.ewar = mech.order = mech.order_left = 0
    mech.vx = mech.vy = mech.vz = mech.noise = 0.0
    mech.forward = mech.strafe = mech.vertical = mech.turn = 0.0
    mech.pressed, mech.focus = [False] * 5, NOBODY


def note_assists(battle: Battle, mech: Mech, killer: int) -> None:
    enough = battle.rules.assist_share * battle.chassis(mech).hp
    for other in battle.mechs:
        taken = battle.ledger[other.index][mech.index]
        helped = taken >= enough or (mech.painted > 0 and mech.painter == other.index)
        if other.team != mech.team and other.index != killer and helped:
            battle.emit("assist", other.index, mech.place, mech.index, amount=taken)


def stamp_wrecks(battle: Battle, dead: list[Mech]) -> None:
    bases = {mech.index: ground_below(battle, mech) for mech in dead}
    solid = [mech for mech in dead if battle.draw(mech, FOR_WRECK) < battle.chassis(mech).solid_wreck]
    for mech in solid:
        stamp(battle, mech, bases[mech.index], SOLID_DEBRIS)
    for mech in dead:
        if mech not in solid:
            stamp(battle, mech, bases[mech.index], DEBRIS)


def footprint(x: float, y: float, half_width: float) -> list[tuple[int, int]]:
    """The columns (x, y) that a body reaches into."""
    columns = range(floor(x - half_width + TOUCH), floor(x + half_width - TOUCH) + 1)
    rows = range(floor(y - half_width + TOUCH), floor(y + half_width - TOUCH) + 1)
    return [(column, row) for row in rows for column in columns]


def ground_below(battle: Battle, mech: Mech) -> int:
    """The layer onto which a dead body drops."""
    below = range(floor(mech.feet + TOUCH))
    columns = footprint(mech.x, mech.y, mech.half_width)
    return max((z + 1 for z in below for x, y in columns if battle.terrain.stops_bodies(z, y, x)), default=0)


def stamp(battle: Battle, mech: Mech, base: int, material: int) -> None:
    terrain, w = battle.terrain, mech.half_width
    for z in range(base, min(floor(base + mech.height - 0.5), LAYERS - 1) + 1):
        for y in range(ceil(mech.y - w - 0.5), floor(mech.y + w - 0.5) + 1):
            for x in range(ceil(mech.x - w - 0.5), floor(mech.x + w - 0.5) + 1):
                if terrain.at(z, y, x) in (AIR, DIRT) and not occupied(battle, z, y, x):
                    battle.changes.append(terrain.put(z, y, x, material))


def occupied(battle: Battle, z: int, y: int, x: int) -> bool:
    """Whether a living mech reaches into a voxel."""
    for mech in battle.living():
        wide, high = mech.half_width + 0.5 - TOUCH, mech.half_height + 0.5 - TOUCH
        near = abs(x + 0.5 - mech.x) < wide and abs(y + 0.5 - mech.y) < wide
        if near and abs(z + 0.5 - mech.z) < high:
            return True
    return False


# --- 6. shutdown -----------------------------------------------------------------------------------------------------


def watch_reactors(battle: Battle) -> None:
    for mech in battle.living():
        too_hot = mech.heat > battle.chassis(mech).heat_capacity
        if too_hot != mech.shut:
            mech.shut = too_hot
            battle.emit("shutdown" if too_hot else "restart", mech.index, mech.place, amount=mech.heat)
