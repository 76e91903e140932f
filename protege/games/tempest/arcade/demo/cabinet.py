"""A cabinet for everybody: a ROM set of our own for MAME's tempest1 board, with a game of our own in it.

The set has the names and sizes MAME expects. Its checksums are wrong by intention: not a byte comes from the original
game, and MAME runs it with a warning.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from protege.games.tempest.arcade.demo import picture
from protege.games.tempest.arcade.demo.assembler import ORIGIN, Program, assemble
from protege.games.tempest.arcade.mame import ROM_FILES, ROM_SET
from protege.kernels import cache_root

SOURCE: Final = Path(__file__).with_name("game.asm")
_PROGRAM_END: Final = 0xE000  # the last 2 KiB appear at $F800 too, where the processor looks for its vectors
_PROGRAM: Final = [name for name in ROM_FILES if "136002-113" <= name < "136002-123"]
_PICTURES: Final = ("136002-123.np3", "136002-124.r3")
_STATES: Final = "136002-125.d7"


def demo_program() -> Program:
    """The game, assembled."""
    return assemble(SOURCE.read_text(), picture.tables(), picture.vector_rom()[1])


def rom_set() -> dict[str, bytes]:
    """The 20 files by name."""
    program = demo_program()
    image = program.code.ljust(_PROGRAM_END - ORIGIN - 6, b"\xea")  # NOP
    assert len(image) == _PROGRAM_END - ORIGIN - 6, f"the program is too long: {len(program.code)} bytes"
    for vector in ("interrupt", "reset", "interrupt"):  # NMI is not connected
        image += program.symbols[vector].to_bytes(2, "little")
    files = {name: bytes(size) for name, size in ROM_FILES.items()}  # the PROMs of the math box are never asked
    for names, whole in ((_PROGRAM, image), (_PICTURES, picture.vector_rom()[0])):
        for number, name in enumerate(names):
            files[name] = whole[number * 0x800 : (number + 1) * 0x800]
    return files | {_STATES: picture.state_prom()}


def write_rom_set(folder: Path) -> None:
    """Write the set into FOLDER/tempest1, for MAME's -rompath FOLDER."""
    (folder / ROM_SET).mkdir(parents=True)
    for name, content in rom_set().items():
        (folder / ROM_SET / name).write_bytes(content)


def demo_roms() -> Path:
    """The folder in the cache that holds the set, written where it is missing or another version's."""
    folder = cache_root() / "demo-cabinet"
    files = rom_set()
    held = folder / ROM_SET
    if held.is_dir() and all((held / n).is_file() and (held / n).read_bytes() == b for n, b in files.items()):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as draft:  # file by file, whole: another MAME may be reading them
        held.mkdir(exist_ok=True)
        for name, content in files.items():
            (Path(draft) / name).write_bytes(content)
            (Path(draft) / name).replace(held / name)
    return folder
