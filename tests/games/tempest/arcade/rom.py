"""A ROM set of our own for MAME's tempest1 board: tests/games/tempest/arcade/rom.asm, assembled.

The set has the names and sizes MAME expects. Its checksums are wrong by intention: not a byte comes from the original
game, and MAME runs it with a warning. Holds a small two-pass assembler for the 6502: one instruction to a line,
`name = value`, `label:`, `.byte`, `.word`, and the names of protege.games.tempest.rules.ram.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from protege.games.tempest.rules import ram

SOURCE: Final = Path(__file__).with_suffix(".asm")
ORIGIN: Final = 0x9000
PROGRAM_END: Final = 0xE000  # the last 2 KiB appear at $F800 too, where the processor looks for its vectors
ROM_BYTES: Final = 0x800

PROGRAM_FILES: Final = "113.d1 114.e1 115.f1 116.h1 117.j1 118.k1 119.lm1 120.mn1 121.p1 122.r1".split()
# The picture and the sums of the original: this program asks for neither, so these only have to be there.
UNUSED_FILES: Final = {
    "123.np3": 2048, "124.r3": 2048, "125.d7": 256, "126.a1": 32, "127.e1": 256, "128.f1": 256, "129.h1": 256,
    "130.j1": 256, "131.k1": 256, "132.l1": 256,
}  # fmt: skip

# Operation codes by addressing mode: immediate, zero page, zero page + X, absolute, absolute + X, absolute + Y.
_MODES: Final = ("#", "z", "zx", "a", "ax", "ay")
_CODES: Final = {
    "ADC": "69 65 75 6D 7D 79", "AND": "29 25 35 2D 3D 39", "CMP": "C9 C5 D5 CD DD D9", "EOR": "49 45 55 4D 5D 59",
    "LDA": "A9 A5 B5 AD BD B9", "ORA": "09 05 15 0D 1D 19", "SBC": "E9 E5 F5 ED FD F9", "STA": "-- 85 95 8D 9D 99",
    "LDX": "A2 A6 -- AE -- BE", "LDY": "A0 A4 B4 AC BC --", "STX": "-- 86 -- 8E -- --", "STY": "-- 84 94 8C -- --",
    "CPX": "E0 E4 -- EC -- --", "CPY": "C0 C4 -- CC -- --", "BIT": "-- 24 -- 2C -- --",
    "INC": "-- E6 F6 EE FE --", "DEC": "-- C6 D6 CE DE --", "ASL": "-- 06 16 0E 1E --", "LSR": "-- 46 56 4E 5E --",
    "JMP": "-- -- -- 4C -- --", "JSR": "-- -- -- 20 -- --",
}  # fmt: skip
_ALONE: Final = {
    "CLC": 0x18, "CLD": 0xD8, "CLI": 0x58, "SEC": 0x38, "SED": 0xF8, "SEI": 0x78, "DEX": 0xCA, "DEY": 0x88,
    "INX": 0xE8, "INY": 0xC8, "PHA": 0x48, "PLA": 0x68, "RTI": 0x40, "RTS": 0x60, "TAX": 0xAA, "TAY": 0xA8,
    "TXA": 0x8A, "TXS": 0x9A, "TYA": 0x98, "ASL A": 0x0A, "LSR A": 0x4A, "ROL A": 0x2A,
}  # fmt: skip
_BRANCHES: Final = {"BCC": 0x90, "BCS": 0xB0, "BEQ": 0xF0, "BMI": 0x30, "BNE": 0xD0, "BPL": 0x10}


@dataclass(frozen=True)
class Program:
    """Machine code from ORIGIN on, and where everything in it and in memory is."""

    code: bytes
    symbols: dict[str, int]


def assemble(source: str) -> Program:
    """The program of a source text; a line that cannot be understood is an error that quotes it."""
    symbols = {name: value for name, value in vars(ram).items() if name.isupper() and isinstance(value, int)}
    _pass(source, symbols, final=False)  # finds where the labels are
    return Program(_pass(source, symbols, final=True), symbols)


def _pass(source: str, symbols: dict[str, int], final: bool) -> bytes:
    code = bytearray()
    for number, written in enumerate(source.splitlines(), 1):
        line = written.partition(";")[0].strip()
        try:
            if label := re.match(r"(\w+):\s*", line):
                symbols[label[1]] = ORIGIN + len(code)
                line = line[label.end() :]
            if definition := re.fullmatch(r"(\w+)\s*=\s*(.+)", line):
                symbols[definition[1]] = _value(definition[2], symbols, final=True)
            elif line:
                code += _instruction(line, ORIGIN + len(code), symbols, final)
        except (KeyError, NameError, SyntaxError, ValueError, OverflowError) as error:
            raise SyntaxError(f"line {number}: {written.strip()!r}: {error}") from error
    return bytes(code)


def _instruction(line: str, address: int, symbols: dict[str, int], final: bool) -> bytes:
    if line in _ALONE:
        return bytes([_ALONE[line]])
    name, _, operand = line.partition(" ")
    if name in (".byte", ".word"):
        size = 1 if name == ".byte" else 2
        return b"".join(_value(part, symbols, final).to_bytes(size, "little") for part in operand.split(","))
    if name in _BRANCHES:
        distance = _value(operand, symbols, final) - (address + 2) if final else 0
        return bytes([_BRANCHES[name]]) + distance.to_bytes(1, "little", signed=True)
    codes = {mode: code for mode, code in zip(_MODES, _CODES[name].split(), strict=True) if code != "--"}
    if operand.strip().startswith("#"):
        return bytes.fromhex(codes["#"]) + _value(operand.strip()[1:], symbols, final).to_bytes(1, "little")
    where, _, index = operand.partition(",")
    target, index = _value(where, symbols, final), index.strip().lower()
    if target < 0x100 and f"z{index}" in codes:
        return bytes.fromhex(codes[f"z{index}"]) + target.to_bytes(1, "little")
    return bytes.fromhex(codes[f"a{index}"]) + target.to_bytes(2, "little")


class _Known(dict[str, int]):
    """Names and their values; a label further down counts as far away until it is met."""

    def __missing__(self, name: str) -> int:
        return ORIGIN


def _value(expression: str, symbols: dict[str, int], final: bool) -> int:
    python = re.sub(r"\$([0-9A-Fa-f]+)", r"0x\1", expression.strip())
    return int(eval(python, {"__builtins__": {}}, symbols if final else _Known(symbols)))


def write_rom_set(folder: Path) -> Program:
    """Write the 20 files of the set into FOLDER/tempest1, for MAME's -rompath FOLDER."""
    program = assemble(SOURCE.read_text())
    image = program.code.ljust(PROGRAM_END - ORIGIN - 6, b"\xea")  # NOP
    assert len(image) == PROGRAM_END - ORIGIN - 6, f"the program is too long: {len(program.code)} bytes"
    for vector in ("interrupt", "reset", "interrupt"):  # NMI is not connected
        image += program.symbols[vector].to_bytes(2, "little")
    place = folder / "tempest1"
    place.mkdir(parents=True)
    for number, name in enumerate(PROGRAM_FILES):
        (place / f"136002-{name}").write_bytes(image[number * ROM_BYTES : (number + 1) * ROM_BYTES])
    for name, size in UNUSED_FILES.items():
        (place / f"136002-{name}").write_bytes(bytes(size))
    return program
