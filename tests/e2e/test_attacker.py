"""Somebody on the wire who forges packets to a live connection. Memory that was not granted is never touched, what is thrown away
has a name, and the connection lives, but where the specification ends it: a request from the peer's address, with the packet
number that is expected, for what is not allowed."""

import json
import random

import pytest

from harness import forged
from harness.connection import STATE_ERROR, STATE_RTS, SUCCESS, pair, statuses
from harness.process import eventually

ELSEWHERE = {"v4": "10.77.0.66", "v6": "fd77::66"}
EVERYTHING = 15


class Scene:
    """`victim` on the left, its peer and the attacker on the right. The victim grants one region of 4096 bytes; around it
    lies memory that it does not grant, or grants to read only."""

    def __init__(self, hosts, family):
        self.hosts = left, right = hosts
        self.peer, self.victim = pair(right, left, family=family, psn=0x1000, peer_psn=0x2000, timeout=14)
        self.granted = self.victim.region(4096, EVERYTHING)
        self.private = self.victim.region(4096, 1)
        self.read_only = self.victim.region(4096, 4)
        self.qpn, self.psn = self.victim.info["qpn"], 0x1000
        self.elsewhere = ELSEWHERE[family]
        right.ip("address", "add", self.elsewhere + ("/24" if family == "v4" else "/64"), "dev", "veth0",
                 *(["nodad"] if family == "v6" else []))
        self.attacker = forged.Attacker(right, getattr(right, family), getattr(left, family))
        self.expected = self.everything()

    def everything(self):
        return [self.victim.digest(), *(self.victim.region_digest(number) for number in range(3))]

    def place(self, region, offset=0):
        return region["address"] + offset, region["rkey"]

    def drops(self):
        processes = json.loads(self.hosts[0].verbena("drops", "--all", "--json"))["processes"]
        total = {}
        for process in processes:
            for device in process["devices"]:
                for name, count in {**device["counters"], **device.get("drops", {})}.items():
                    total[name] = total.get(name, 0) + count
        return total

    def throw(self, packet, name, **how):
        """Throws a packet and waits until it is counted by this name."""
        before = self.drops().get(name, 0)
        self.attacker.throw(packet, **how)
        eventually(lambda: self.drops().get(name, 0) > before, 5, f"one more {name}")

    def lives(self):
        """The connection does, both ways, and nothing was touched."""
        assert self.everything() == self.expected
        assert self.victim.state() == STATE_RTS and self.peer.state() == STATE_RTS
        self.peer.fill(0, 64, f"alive {self.psn}")
        self.peer.post("write", 1, 0, 64, self.place(self.granted))
        self.peer.post("read", 2, 64, 64, self.place(self.granted))
        assert statuses(self.peer.poll(2)) == [SUCCESS, SUCCESS]
        self.psn += 2
        assert self.peer.is_pattern(64, 64, f"alive {self.psn - 2}")
        self.victim.post("read", 3, 0, 8, self.peer.at(0))
        assert statuses(self.victim.poll()) == [SUCCESS]
        self.victim.wipe(0, 8)
        self.expected = self.everything()


@pytest.fixture(params=["v4", "v6"])
def scene(request, hosts):
    return Scene(hosts, request.param)


def test_from_another_address_nothing_is_believed(scene):
    address, rkey = scene.place(scene.granted)
    for packet in (forged.write(scene.qpn, scene.psn, address, rkey, b"evil" * 8),
                   forged.read(scene.qpn, scene.psn, address, rkey, 64),
                   forged.write(scene.qpn, scene.psn, address, rkey + 256, b"evil"),
                   forged.bth(forged.FETCH_ADD, scene.qpn, scene.psn) + forged.atomic_eth(address, rkey, 1),
                   forged.bth(forged.SEND_ONLY, scene.qpn, scene.psn) + b"evil",
                   forged.bth(forged.ACKNOWLEDGE, scene.qpn, 0x2000) + forged.aeth(0x62)):
        scene.throw(packet, "not_the_peer", source=scene.elsewhere)
    scene.lives()


def test_a_queue_pair_number_that_is_guessed_wrongly(scene):
    address, rkey = scene.place(scene.granted)
    for guess in (scene.qpn + 1, scene.qpn ^ 0xff00, 0xfffffe, 2):
        before = scene.drops()
        scene.attacker.throw(forged.write(guess, scene.psn, address, rkey, b"evil"))
        named = ("unknown_qpn", "hand_over_failed")
        eventually(lambda: any(scene.drops()[name] > before[name] for name in named), 5, f"{guess:#x} is dropped")
    scene.lives()


def test_a_packet_number_that_is_not_the_expected_one(scene):
    address, rkey = scene.place(scene.granted)
    for ahead in (1, 1000, 0x7fffff):
        scene.throw(forged.write(scene.qpn, scene.psn + ahead, address, rkey, b"evil" * 4), "out_of_sequence")
        scene.throw(forged.write(scene.qpn, scene.psn + ahead, address, rkey ^ 0xff00, b"evil" * 4), "out_of_sequence")
    scene.lives()


def test_what_was_carried_out_is_not_carried_out_again(scene):
    """Replays, exact and altered: of a write, of an atomic, of a send."""
    address, rkey = scene.place(scene.granted)
    scene.peer.fill(0, 64, "first")
    scene.victim.receive(1, 0, 64)
    scene.peer.post("write", 1, 0, 64, scene.place(scene.granted))
    scene.peer.post("add", 2, 64, 8, scene.place(scene.granted, 1024), compare=5)
    scene.peer.post("send", 3, 0, 64)
    assert statuses(scene.peer.poll(3)) == [SUCCESS] * 3 and statuses(scene.victim.poll()) == [SUCCESS]
    scene.victim.receive(2, 512, 64)
    scene.expected = scene.everything()
    psn, scene.psn = scene.psn, scene.psn + 3
    for _ in range(3):
        scene.throw(forged.write(scene.qpn, psn, address, rkey, b"evil" * 16), "duplicate_requests")
        scene.throw(forged.write(scene.qpn, psn, *scene.place(scene.private), b"evil" * 16), "duplicate_requests")
        scene.attacker.throw(forged.bth(forged.FETCH_ADD, scene.qpn, psn + 1) + forged.atomic_eth(address + 1024, rkey, 5))
        scene.attacker.throw(forged.bth(forged.COMPARE_SWAP, scene.qpn, psn + 1) +
                             forged.atomic_eth(address + 2048, rkey, 5, 0))
        scene.throw(forged.bth(forged.SEND_ONLY, scene.qpn, psn + 2) + b"evil" * 16, "duplicate_requests")
    scene.attacker.throw(forged.read(scene.qpn, psn, *scene.place(scene.private), 4096))
    assert scene.victim.poll(1, 0.3) == []
    scene.lives()


def test_packets_that_are_none(scene):
    address, rkey = scene.place(scene.granted)
    good = forged.write(scene.qpn, scene.psn, address, rkey, b"evil" * 4)
    sealed = forged.sealed(scene.attacker.source, scene.attacker.victim, good)
    scene.throw(sealed[:-1] + bytes([sealed[-1] ^ 1]), "icrc_mismatch", seal=False)
    scene.throw(good[:20], "truncated")
    scene.throw(b"", "truncated", seal=False)
    scene.throw(forged.bth(forged.WRITE_ONLY, scene.qpn, scene.psn, version=1) + good[12:], "bad_transport_version")
    scene.throw(forged.bth(0x15, scene.qpn, scene.psn) + good[12:], "unknown_opcode")
    scene.throw(forged.bth(0x2a, scene.qpn, scene.psn) + good[12:], "opcode_not_for_qp")
    scene.throw(forged.bth(0x64, scene.qpn, scene.psn) + bytes(24), "opcode_not_for_qp")
    scene.throw(forged.bth(forged.SEND_ONLY, scene.qpn, scene.psn, pad=3), "bad_pad_count")
    scene.throw(forged.bth(forged.WRITE_ONLY, scene.qpn, scene.psn, pkey=0x1234) + good[12:], "pkey_mismatch")
    scene.lives()


def test_answers_to_what_was_never_asked(scene):
    for psn in (0x2000, 0x2001, 0x1fff, 0xa00000):
        for packet in (forged.bth(forged.ACKNOWLEDGE, scene.qpn, psn) + forged.aeth(0x1f),
                       forged.bth(forged.ACKNOWLEDGE, scene.qpn, psn) + forged.aeth(0x60),
                       forged.bth(forged.ACKNOWLEDGE, scene.qpn, psn) + forged.aeth(0x62),
                       forged.bth(forged.READ_RESPONSE_ONLY, scene.qpn, psn) + forged.aeth(0x1f) + b"evil" * 16,
                       forged.bth(forged.ATOMIC_ACKNOWLEDGE, scene.qpn, psn) + forged.aeth(0x1f) + b"evilevil"):
            scene.attacker.throw(packet)
    scene.lives()
    assert scene.drops()["unexpected_response"] > 0


# From the peer's address, with the right numbers: the specification has the responder refuse it and end the connection.
REFUSED = {
    "write with a wrong key": lambda s: forged.write(s.qpn, s.psn, s.granted["address"], s.granted["rkey"] ^ 1, b"evil"),
    "write to memory that is not granted": lambda s: forged.write(s.qpn, s.psn, *s.place(s.private), b"evil"),
    "write to memory granted to read": lambda s: forged.write(s.qpn, s.psn, *s.place(s.read_only), b"evil"),
    "write behind the end": lambda s: forged.write(s.qpn, s.psn, *s.place(s.granted, 4093), b"evil"),
    "write before the beginning": lambda s: forged.write(s.qpn, s.psn, *s.place(s.granted, -1), b"evil"),
    "write that wraps around": lambda s: forged.write(s.qpn, s.psn, (1 << 64) - 2, s.granted["rkey"], b"evil"),
    "write that says it is longer": lambda s: forged.write(s.qpn, s.psn, *s.place(s.granted), b"evil", length=4096),
    "write that says it is shorter": lambda s: forged.write(s.qpn, s.psn, *s.place(s.granted), b"evil", length=2),
    "write of 4 GiB": lambda s: forged.write(s.qpn, s.psn, *s.place(s.granted), b"evil" * 1024, 0xffffffff,
                                             forged.WRITE_FIRST),
    "read with a wrong key": lambda s: forged.read(s.qpn, s.psn, s.granted["address"], s.granted["rkey"] ^ 0x100, 64),
    "read of memory that is not granted": lambda s: forged.read(s.qpn, s.psn, *s.place(s.private), 64),
    "read of 4 GiB": lambda s: forged.read(s.qpn, s.psn, *s.place(s.granted), 0xffffffff),
    "read one byte too far": lambda s: forged.read(s.qpn, s.psn, *s.place(s.granted), 4097),
    "atomic out of bounds": lambda s: forged.bth(forged.FETCH_ADD, s.qpn, s.psn) + forged.atomic_eth(
        s.granted["address"] + 4089, s.granted["rkey"], 1),
    "atomic that is not aligned": lambda s: forged.bth(forged.FETCH_ADD, s.qpn, s.psn) + forged.atomic_eth(
        s.granted["address"] + 4, s.granted["rkey"], 1),
    "middle without a first": lambda s: forged.bth(forged.WRITE_MIDDLE, s.qpn, s.psn) + b"evil" * 1024,
    "first that is too short": lambda s: forged.write(s.qpn, s.psn, *s.place(s.granted), b"evil", 4096, forged.WRITE_FIRST),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_request_that_is_not_allowed_touches_nothing_and_ends_the_connection(hosts, what):
    scene = Scene(hosts, "v4")
    scene.attacker.throw(REFUSED[what](scene))
    eventually(lambda: scene.victim.state() == STATE_ERROR, 5, "the queue pair is in the error state")
    drops = scene.drops()
    assert drops["remote_access"] + drops["invalid_request"] == 1, drops
    assert scene.everything() == scene.expected


def test_a_storm_of_damaged_packets(scene):
    """Packets of the right shape with bytes changed by a seed, sealed again so that they are looked at, from elsewhere and from
    the peer's address to queue pairs near the right one."""
    random.seed(4)
    address, rkey = scene.place(scene.granted)
    shapes = [forged.write(scene.qpn, scene.psn, address, rkey, b"evil" * 16), forged.read(scene.qpn, scene.psn, address, rkey, 64),
              forged.bth(forged.FETCH_ADD, scene.qpn, scene.psn) + forged.atomic_eth(address, rkey, 1),
              forged.bth(forged.SEND_ONLY, scene.qpn, scene.psn) + bytes(64)]
    for number in range(400):
        packet = bytearray(random.choice(shapes))
        for _ in range(random.randint(1, 6)):
            packet[random.randrange(len(packet))] = random.randrange(256)
        packet = bytes(packet[:random.choice([len(packet)] * 3 + [random.randrange(len(packet))])])
        if number % 2 == 0:
            scene.attacker.throw(packet, source=scene.elsewhere)
        else:  # never the right queue pair
            scene.attacker.throw(packet[:5] + ((scene.qpn + 1 + number) & 0xffffff).to_bytes(3, "big") + packet[8:])
    scene.lives()
