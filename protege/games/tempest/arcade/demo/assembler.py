"""A small two-pass assembler for the 6502, for the demo cabinet's program.

One instruction to a line, `name = value`, `label:`, `.byte`, `.word`, `.org address`, `.table name`, and the names of
protege.games.tempest.rules.ram.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from protege.games.tempest.rules import ram

ORIGIN: Final = 0x9000

# Operation codes by addressing mode: immediate, zero page, zero page + X, absolute, absolute + X, absolute + Y.
_MODES: Final = ("#", "z", "zx", "a", "ax", "ay")
_INDIRECT: Final = {"LDA": 0xB1, "STA": 0x91, "ADC": 0x71}  # (zero page),Y
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
    "TXA": 0x8A, "TXS": 0x9A, "TYA": 0x98, "ASL A": 0x0A, "LSR A": 0x4A, "ROL A": 0x2A, "ROR A": 0x6A,
}  # fmt: skip
_BRANCHES: Final = {"BCC": 0x90, "BCS": 0xB0, "BEQ": 0xF0, "BMI": 0x30, "BNE": 0xD0, "BPL": 0x10}


@dataclass(frozen=True)
class Program:
    """Machine code from ORIGIN on, and where everything in it and in memory is."""

    code: bytes
    symbols: dict[str, int]


def assemble(source: str, tables: Mapping[str, bytes], given: Mapping[str, int]) -> Program:
    """The program of a source text; a line that cannot be understood is an error that quotes it."""
    symbols = {name: value for name, value in vars(ram).items() if name.isupper() and isinstance(value, int)}
    symbols |= given
    _pass(source, tables, symbols, final=False)  # finds where the labels are
    return Program(_pass(source, tables, symbols, final=True), symbols)


def _pass(source: str, tables: Mapping[str, bytes], symbols: dict[str, int], final: bool) -> bytes:
    code = bytearray()
    for number, written in enumerate(source.splitlines(), 1):
        line = written.partition(";")[0].strip()
        try:
            if label := re.match(r"(\w+):\s*", line):
                symbols[label[1]] = ORIGIN + len(code)
                line = line[label.end() :]
            if definition := re.fullmatch(r"(\w+)\s*=\s*(.+)", line):
                symbols[definition[1]] = _value(definition[2], symbols, final=True)
            elif line.startswith(".org "):
                gap = _value(line[5:], symbols, final=True) - ORIGIN - len(code)
                if gap < 0:
                    raise ValueError(f"the program is {-gap} bytes too long")
                code += b"\xea" * gap  # NOP
            elif line.startswith(".table "):
                code += tables[line[7:].strip()]
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
    if indirect := re.fullmatch(r"\((.+)\),Y", operand.strip()):
        return bytes([_INDIRECT[name]]) + _value(indirect[1], symbols, final).to_bytes(1, "little")
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
