"""What this machine has for playing real machines: rows of `protege doctor`."""

from collections.abc import Sequence

from protege.cli.doctor import check_port
from protege.games import Check
from protege.games.tempest.arcade.mame import ArcadeError, find_mame, find_rom_set, mame_version, rom_folders
from protege.runs.files import short_path

BRIDGE_PORT = 9999
NOT_NEEDED = "the simulator does not need it"


def checks() -> Sequence[Check]:
    """The emulator, its ROM set, and the port that its clients connect to."""
    program = None
    try:
        program = find_mame()
        mame = Check("MAME", "ok", f"{mame_version(program)}, {program}")
    except ArcadeError as error:
        mame = Check("MAME", "missing", error.found, f"{error.advice}; {NOT_NEEDED}")
    try:
        roms = Check("ROM set", "ok", short_path(find_rom_set(rom_folders(program))))
    except ArcadeError as error:
        roms = Check("ROM set", "missing", error.found, f"{error.advice}; {NOT_NEEDED}")
    advice = "stop that program, or choose another port for the arcade bridge"
    return mame, roms, check_port(BRIDGE_PORT, "arcade bridge", advice)
