"""The bytes of the bridge: frames by hand, what is believed and what is not, greetings, and bytes as they arrive."""

import random
import struct

import numpy as np
import numpy.typing as npt
import pytest

from protege import ProtegeError
from protege.games.tempest.arcade import wire
from protege.games.tempest.rules import ram
from protege.games.tempest.task import teacher
from tests.games.tempest.arcade.client import FRAME_BYTES, SOUND, Machine, a1_values, packet_of
from tests.games.tempest.task.scenes import A1, A2, A2_BEFORE, A2_DYING, row_of, scene

# Appendix A.1 of the agent specification, spelled out: all memory zero, the first frame of a process.
A1_HEADER = bytes.fromhex(
    "0333"  # 819 bytes follow
    "00c3"  # 195 values
    "0000000000000000 0000000000000000"  # rewards
    "00 00 00"  # state, mode, done
    "0001"  # frame 1
    "00000000"  # score
    "00"  # no wish to save
    "00 00 0000"  # echo of nothing
    "0000"  # target lane 0
    "00 00"  # player's lane, closed
    "00 00"  # the teacher neither fires (here) nor zaps
    "00"  # level
)


def test_a_frame_is_821_bytes_and_its_fields_lie_where_the_specification_puts_them():
    assert wire.FRAME.itemsize == FRAME_BYTES == 2 + 39 + 4 * 195
    numbered = bytes(range(41)) + bytes(780)
    packet = np.frombuffer(numbered, wire.FRAME)[0]
    prefixed = struct.unpack(">HHddBBBHIBBBhhBBBBB", numbered[:41])
    names = wire.FRAME.names or ()
    assert [packet[name] for name in names[:-1]] == list(prefixed)


def test_the_all_zero_machine_gives_the_bytes_of_appendix_a1():
    by_hand = A1_HEADER + struct.pack(">195f", *a1_values())
    packets, values = wire.decode(by_hand)
    assert is_sound(packets, values).all()
    assert values[0].tolist() == a1_values()
    machine = Machine(row_of(A1))
    sent = bytearray(machine.packet())
    sent[38] = 0  # whether the teacher fires is a matter of chance
    assert bytes(sent) == by_hand


def test_appendix_a2_decodes_to_its_header_and_values():
    packets, values = wire.decode(Machine(row_of(A2, A2_BEFORE), teacher.NEWER).packet())
    packet = packets[0]
    assert is_sound(packets, values).all()
    assert (packet["subjective"], packet["objective"], packet["done"]) == (1.5, 50.0, 0)
    assert (packet["state"], packet["mode"], packet["level"]) == (4, 192, 20)
    assert (packet["score"], packet["lane"], packet["open"]) == (123_450, 15, 1)
    assert (packet["target"], packet["advised_zap"]) == (14, 0)
    assert values[0, [0, 1, 128, 149, 181]].round(6).tolist() == pytest.approx(
        [0.111111, 0.752941, -0.106667, 0.188477, 0.125]
    )


def test_the_tick_of_a_death_costs_a_thousand_points_and_nothing_else():
    packet = wire.decode(Machine(row_of(A2_DYING, A2)).packet())[0][0]
    assert (packet["objective"], packet["subjective"], packet["done"]) == (-1000.0, 0.0, 1)


def is_sound(packets: wire.Packets, values: wire.Values) -> npt.NDArray[np.bool_]:
    """Whether frames are believed, as the first of their connections."""
    found = wire.find_faults(packets, values, np.full((len(packets), 3), wire.NOTHING_SENT, np.int16))
    return np.equal(found, 0)


# --- what is believed ---


def with_value(index: int, value: float) -> list[float]:
    return [*SOUND[:index], value, *SOUND[index + 1 :]]


@pytest.mark.parametrize(
    "fault, packet",
    [
        ("wrong count", packet_of(SOUND, count=194)),
        ("not finite", packet_of(with_value(100, np.nan))),
        ("not finite", packet_of(with_value(0, np.inf))),
        ("not finite", packet_of(SOUND, objective=np.nan)),
        ("not finite", packet_of(SOUND, subjective=-np.inf)),
        ("out of range", packet_of(with_value(100, 1.001))),
        ("out of range", packet_of(with_value(194, -3e38))),
        ("out of range", packet_of(SOUND, objective=2000.5)),
        ("out of range", packet_of(SOUND, subjective=-10.5)),
        ("out of range", packet_of(SOUND, score=1_000_000)),
        ("out of range", packet_of(SOUND, lane=16)),
        ("out of range", packet_of(SOUND, target=16)),
        ("out of range", packet_of(SOUND, target=-2)),
        ("out of range", packet_of(SOUND, done=2)),
        ("out of range", packet_of(SOUND, save=255)),
        ("out of range", packet_of(SOUND, zap=3)),
        ("contradiction", packet_of(SOUND, state=ram.ZOOM)),
        ("contradiction", packet_of(SOUND, mode=0)),
        ("contradiction", packet_of(SOUND, level=3)),
        ("contradiction", packet_of(SOUND, is_open=1)),
    ],
)
def test_a_frame_with_a_fault_is_not_believed_and_the_fault_is_named(fault, packet):
    packets, values = wire.decode(packet_of(SOUND) + packet)
    found = wire.find_faults(packets, values, np.full((2, 3), wire.NOTHING_SENT, np.int16))
    assert [wire.FAULTS[number] for number in found] == ["", fault]


@pytest.mark.parametrize(
    "packet",
    [
        packet_of(with_value(100, 1.00005)),
        packet_of(SOUND, target=-32768),
        packet_of(SOUND, score=999_999, objective=-1000, counter=65_535, lane=15, target=15),
        packet_of(with_value(28, 1.0), level=200),  # levels above 98 read as 1.0
    ],
)
def test_what_lies_on_the_edge_is_believed(packet):
    assert is_sound(*wire.decode(packet)).all()


def test_signalling_numbers_that_are_none_are_found_without_a_complaint():
    packet = bytearray(packet_of(SOUND))
    packet[41:45] = bytes.fromhex("7f800001")
    assert not is_sound(*wire.decode(bytes(packet))).any()


def test_every_tick_of_a_game_is_believed():
    from protege.games.tempest.task.env import starts

    for level in (1, 17, 60):
        machine = Machine(starts(1, level=level)[0])
        for _ in range(300):
            assert is_sound(*wire.decode(machine.packet())).all()
            target, fire, zap = teacher.advise(machine.row, teacher.MEET)
            machine.tick(struct.pack("bbb", fire, zap, teacher.spinner_to(machine.row, target)))


@pytest.mark.parametrize(
    "echo, fault",
    [((1, 0, -12), ""), ((0, 0, -12), "wrong echo"), ((1, 1, -12), "wrong echo"), ((1, 0, 256 - 12), "wrong echo")],
)
def test_the_last_reply_must_be_echoed(echo, fault):
    packets, values = wire.decode(packet_of(SOUND, echo=echo))
    found = wire.find_faults(packets, values, np.array([[1, 0, -12]], np.int16))
    assert wire.FAULTS[found[0]] == fault


# --- advice ---


@pytest.mark.parametrize("is_open", [0, 1])
def test_a_target_lane_becomes_the_command_the_teacher_would_give(is_open):
    for lane in range(15):
        row = row_of(scene(lane, on_open=bool(is_open)))
        for target in range(-1, 15):
            packets, _ = wire.decode(packet_of(SOUND, lane=lane, is_open=is_open, target=target))
            assert wire.spinner_to(packets[0]) == teacher.spinner_to(row, target)


def test_three_lanes_up_is_a_command_of_minus_14():
    assert wire.spinner_to(wire.decode(packet_of(SOUND, lane=2, target=5))[0][0]) == -14  # 0.3 + 3 * 0.05, of 32


def test_no_target_is_no_turn():
    for target in (-1, -32768):
        assert wire.spinner_to(wire.decode(packet_of(SOUND, lane=2, target=target))[0][0]) == 0


def test_commands_are_limited_to_what_the_reply_allows():
    wild = np.array([[5, -1, 100], [0, 1, -128], [1, 0, 12]], np.int8)
    assert wire.limited(wild).tolist() == [[1, 1, 31], [0, 1, -32], [1, 0, 12]]


# --- greetings ---


def test_an_old_greeting_is_two_bytes_whatever_they_are():
    for said in (b"\0\0", b"\0\1", b"\xff\xff", b"\x50\0"):
        assert wire.read_greeting(memoryview(said + b"\3")) == (wire.Greeting(), 2)


def test_our_greeting_by_hand():
    by_hand = bytes.fromhex("5001 000c 06") + b"secret" + b"\x04" + b"mame"
    assert wire.greet("secret", "mame") == by_hand
    assert wire.read_greeting(memoryview(by_hand)) == (wire.Greeting(1, b"secret", "mame"), 16)


def test_a_greeting_may_arrive_byte_by_byte():
    whole = wire.greet("s", "näme")
    for length in range(len(whole)):
        assert wire.read_greeting(memoryview(whole[:length])) is None or length == 0
    assert wire.read_greeting(memoryview(whole))


@pytest.mark.parametrize(
    "said", ["5001 0001 00", "5001 ffff", "5001 0002 05 00", "5001 0004 00 01 41 42", "5001 0003 000042"]
)
def test_a_greeting_whose_lengths_lie_is_refused(said):
    with pytest.raises(wire.WireError):
        wire.read_greeting(memoryview(bytes.fromhex(said)))


def test_a_name_holds_nothing_that_could_upset_a_terminal():
    called = bytes.fromhex("5001 0009 00 07") + b"a\x1b[31m\xff"
    found = wire.read_greeting(memoryview(called))
    assert found is not None and found[0].name == "a[31m\N{REPLACEMENT CHARACTER}"


def test_an_old_server_takes_our_greeting_for_a_frame_it_must_refuse():
    for token in ("", "x" * 128):
        assert int.from_bytes(wire.greet(token, "n" * 64)[4:6], "big") != 195


def test_the_answer_by_hand():
    assert wire.answer(wire.WELCOME, wire.Start(13, advanced=True)) == bytes([0x50, 1, 0, 1, 13])
    assert wire.answer(wire.FULL, wire.Start()) == bytes([0x50, 1, 2, 0, 0])


def test_words_that_are_too_long_are_refused():
    with pytest.raises(ProtegeError, match="at most 128 bytes"):
        wire.greet("x" * 129)
    with pytest.raises(ProtegeError, match="1 to 81"):
        wire.Start(82)


# --- bytes as they arrive ---


def feed(inbox: wire.Inbox, piece: bytes) -> None:
    inbox.room()[: len(piece)] = piece
    inbox.filled += len(piece)


def test_a_frame_may_arrive_in_any_pieces():
    dice = random.Random(1)
    packets = [packet_of(SOUND, counter=number) for number in range(50)]
    inbox = wire.Inbox()
    for packet in packets:
        rest = packet
        while rest:
            assert inbox.record() == 0
            piece = rest[: dice.choice((1, 2, 3, 400, 821))]
            feed(inbox, piece)
            rest = rest[len(piece) :]
        assert inbox.record() == FRAME_BYTES and bytes(inbox.view[:FRAME_BYTES]) == packet
        inbox.drop(FRAME_BYTES)


def test_what_follows_a_dropped_record_moves_to_the_front():
    inbox = wire.Inbox()
    feed(inbox, b"\0\0" + b"\0\3abc" + b"\0")
    inbox.drop(2)
    assert inbox.record() == 5 and bytes(inbox.view[:6]) == b"\0\3abc\0"
    inbox.drop(5)
    assert inbox.filled == 1 and inbox.record() == 0


@pytest.mark.parametrize("length", [0, 1, 4097, 65_535])
def test_a_record_of_an_impossible_length_is_refused_before_it_arrives(length):
    inbox = wire.Inbox()
    feed(inbox, length.to_bytes(2, "big"))
    with pytest.raises(wire.WireError, match=f"a frame of {length} bytes; expected 819"):
        inbox.record()


def test_the_longest_record_fits():
    inbox = wire.Inbox()
    feed(inbox, (4096).to_bytes(2, "big") + bytes(4096))
    assert inbox.record() == 4098 and len(inbox.room()) == 0
