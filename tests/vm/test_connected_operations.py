"""Connections between Verbena's RNIC and the kernel's rxe on one wire, in both directions: every operation that rxe has, byte by
byte (e2e/programs/connection.py on both ends), with losses on our side, refusals, a death, and the ICRC of every packet."""

import socket
import threading

import pytest

from guest.network import device_of
from harness import icrc
from harness.connection import (FLUSHED, REMOTE_ACCESS, REMOTE_INVALID_REQUEST, REMOTE_OPERATION, RETRY_EXCEEDED, SUCCESS, End,
                                connect, statuses)

HALF = 1 << 17
# For an emulated processor: timeouts of 268 ms, and all the retries there are.
PATIENT = {"timeout": 16, "retry": 7}


@pytest.fixture(params=["to-the-kernel", "to-verbena"])
def server_and_client(request, kernel_and_host):
    kernel, host = kernel_and_host
    return (kernel, host) if request.param == "to-the-kernel" else (host, kernel)


def pair_of(server_and_client, transport="RC", family="v4", impairment=None, **options):
    """The client's end and the server's. Faults are on Verbena's side."""
    server, client = server_and_client
    ends = []
    for host in (client, server):
        env = {"VERBENA_IMPAIR": impairment} if impairment and device_of(host) == "verbena0" else None
        ends.append(End(host, transport, getattr(host, family), 2 * HALF, env=env))
    connect(*ends, **{**PATIENT, **options})
    return ends


def exercise(one, other, rounds):
    """Every operation of RC from `one` to `other`."""
    added = 0
    for number in range(rounds):
        size = (number * 48611 + number) % (HALF - 8)
        one.fill(0, HALF, f"near {number}")
        other.wipe(0, HALF)
        other.fill(HALF, HALF - 8, f"far {number}")
        other.receive(number, 0, HALF, pieces=2)
        one.post("send_imm", 1, 0, size, imm=number)
        one.post("read", 2, HALF, size, other.at(HALF))
        assert [(done[0], done[1]) for done in one.poll(2, 60)] == [(1, SUCCESS), (2, SUCCESS)]
        assert other.poll(1, 60)[0][:5] == [number, SUCCESS, 128, size, number]
        assert other.digest(0, size) == one.digest(0, size)
        assert one.is_pattern(HALF, size, f"far {number}")
        other.wipe(0, HALF)
        other.receive(number, 0, 0)
        one.post("write", 3, 0, size, other.at(0))
        one.post("write_imm", 4, 0, size // 2, other.at(size // 2), imm=99)
        one.post("add", 5, HALF, 8, other.at(2 * HALF - 8), compare=number + 1)
        one.post("swap", 6, HALF + 8, 8, other.at(2 * HALF - 8), compare=added + number + 1, swap=added + number + 2)
        assert [(done[0], done[1]) for done in one.poll(4, 60)] == [(wr_id, SUCCESS) for wr_id in (3, 4, 5, 6)]
        assert other.poll(1, 60)[0][:5] == [number, SUCCESS, 129, size // 2, 99]
        assert other.digest(size // 2, size // 2) == one.digest(0, size // 2)
        assert other.digest(0, size // 2) == one.digest(0, size // 2)
        assert (one.number(HALF), one.number(HALF + 8)) == (added, added + number + 1)
        added += number + 2
        assert other.number(2 * HALF - 8) == added


@pytest.mark.parametrize("family,mtu", [("v4", 5), ("v6", 3)])
def test_every_operation(server_and_client, family, mtu):
    one, other = pair_of(server_and_client, family=family, mtu=mtu, psn=0xfffff8, peer_psn=0x123456)
    exercise(one, other, 6)
    exercise(other, one, 4)


def test_every_operation_over_a_lossy_wire(server_and_client):
    one, other = pair_of(server_and_client, mtu=3, timeout=14, impairment="loss=2%,dup=2%,reorder=2%,corrupt=1%,seed=5")
    exercise(one, other, 5)
    exercise(other, one, 3)


def test_unreliable_messages(server_and_client):
    one, other = pair_of(server_and_client, "UC")
    for number, size in enumerate([0, 1, 4096, 30001]):
        other.receive(number, 0, HALF)
        one.fill(0, HALF, number)
        one.post("send_imm", number, 0, size, imm=number)
        one.post("write", number, 0, size, other.at(HALF))
        assert statuses(one.poll(2)) == [SUCCESS, SUCCESS]
        assert other.poll()[0][:5] == [number, SUCCESS, 128, size, number]
        assert other.digest(0, size) == one.digest(0, size)


def test_a_wrong_key_is_refused(server_and_client):
    one, other = pair_of(server_and_client)
    one.post("read", 1, 0, 100, [other.info["address"], other.info["rkey"] ^ 0x1000])
    one.post("write", 2, 0, 100, other.at(0))
    assert statuses(one.poll(2)) == [REMOTE_ACCESS, FLUSHED]


def test_a_receive_that_is_too_short_is_refused(server_and_client):
    one, other = pair_of(server_and_client)
    other.receive(1, 0, 100)
    one.post("send", 1, 0, 5000)
    # rxe takes the receive for broken, and says that the fault is its own.
    refused = REMOTE_OPERATION if device_of(server_and_client[0]) == "rxe0" else REMOTE_INVALID_REQUEST
    assert statuses(one.poll()) == [refused]


def test_a_receive_that_comes_late_is_waited_for(server_and_client):
    one, other = pair_of(server_and_client)
    one.fill(0, 10000, "late")
    one.post("send", 1, 0, 10000)
    assert one.poll(1, 0.5) == []
    other.receive(1, 0, 10000)
    assert statuses(one.poll()) == [SUCCESS] and other.poll()[0][1] == SUCCESS
    assert other.is_pattern(0, 10000, "late")


def test_the_death_of_the_other_kind(server_and_client):
    one, other = pair_of(server_and_client, timeout=14, retry=2)
    one.post("write", 1, 0, 100, other.at(0))
    assert statuses(one.poll()) == [SUCCESS]
    other.process.kill()
    other.process.finish(20, status=None)
    one.post("write", 2, 0, 100, other.at(0))
    assert statuses(one.poll(1, 30)) == [RETRY_EXCEEDED]


class Sniffer:
    """Every UDP packet to port 4791 on the wire. The test itself is in the kernel's namespace."""

    def __init__(self, link):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind((link, 3))
        self.socket.settimeout(0.5)
        self.packets, self.ended = [], False
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.ended:
            try:
                packet = self.socket.recv(65536)
            except TimeoutError:
                continue
            header = 40 if packet[0] >> 4 == 6 else 20
            if packet[6 if header == 40 else 9] == 17 and packet[header + 2:header + 4] == (4791).to_bytes(2, "big"):
                self.packets.append(packet)

    def stop(self):
        self.ended = True
        self.thread.join()
        self.socket.close()
        return self.packets


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_the_icrc_of_every_packet_of_either_kind(server_and_client, family):
    sniffer = Sniffer("veth0")
    try:
        one, other = pair_of(server_and_client, family=family, mtu=3)
        exercise(one, other, 2)
    finally:
        packets = sniffer.stop()
    opcodes = {icrc.parts(packet)[2][0] for packet in packets}
    assert {0x00, 0x0c, 0x0d, 0x11, 0x12, 0x13, 0x14} <= opcodes, opcodes
    for packet in packets:
        assert icrc.carried(packet) == icrc.computed(packet), packet.hex()
