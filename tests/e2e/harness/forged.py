"""RoCEv2 packets made by hand, as somebody on the wire could, and those of InfiniBand ports. Independent of the product."""

import ipaddress
import json
import struct
import zlib

from . import icrc

PORT = 51234
ROCE_PORT, INFINIBAND_PORT = 4791, 4797
# Opcodes of RC.
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY = 0, 1, 2, 4
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY, WRITE_ONLY_IMM = 6, 7, 8, 10, 11
READ_REQUEST, READ_RESPONSE_ONLY, ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE = 12, 16, 17, 18
COMPARE_SWAP, FETCH_ADD, SEND_ONLY_INVALIDATE = 19, 20, 23
# Of UD.
UD_SEND_ONLY = 0x64


def bth(opcode, qpn, psn, pad=0, version=0, pkey=0xffff, ack=True):
    return struct.pack(">BBHII", opcode, pad << 4 | version, pkey, qpn & 0xffffff, (ack << 31) | (psn & 0xffffff))


def reth(address, rkey, length):
    return struct.pack(">QII", address & (1 << 64) - 1, rkey & (1 << 32) - 1, length)


def atomic_eth(address, rkey, swap_or_add, compare=0):
    return struct.pack(">QIQQ", address & (1 << 64) - 1, rkey & (1 << 32) - 1, swap_or_add, compare)


def aeth(syndrome, msn=0):
    return struct.pack(">I", syndrome << 24 | msn)


def write(qpn, psn, address, rkey, data, length=None, opcode=WRITE_ONLY):
    pad = -len(data) % 4
    return bth(opcode, qpn, psn, pad) + reth(address, rkey, len(data) if length is None else length) + data + bytes(pad)


def read(qpn, psn, address, rkey, length):
    return bth(READ_REQUEST, qpn, psn) + reth(address, rkey, length)


def sealed(source, destination, packet, port=PORT):
    """The packet with the ICRC that it needs to be believed."""
    size = len(packet) + 4 + 8
    udp = struct.pack(">HHHH", port, 4791, size, 0)
    one, other = ipaddress.ip_address(source).packed, ipaddress.ip_address(destination).packed
    if len(one) == 4:
        header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + size, 0, 0x4000, 64, 17, 0) + one + other
    else:
        header = struct.pack(">IHBB", 6 << 28, size, 17, 64) + one + other
    return packet + icrc.computed(header + udp + packet + bytes(4))


def infiniband_datagram(source_lid, lid, qpn, qkey, data):
    """A datagram without GRH from the LRH to the ICRC, which covers the LRH with ones for the virtual lane."""
    pad = -len(data) % 4
    rest = bth(UD_SEND_ONLY, qpn, 0, pad, ack=False) + struct.pack(">II", qkey, 0x17) + data + bytes(pad)
    lrh = struct.pack(">BBHHH", 0, 2, lid, (8 + len(rest) + 4) // 4, source_lid)
    covered = b"\xf0" + lrh[1:] + rest[:4] + b"\xff" + rest[5:]
    return lrh + rest + zlib.crc32(covered).to_bytes(4, "little")


class Attacker:
    """Sends forged packets to `victim` from a host, by any of its addresses."""

    def __init__(self, host, source, victim):
        self.source, self.victim = source, victim
        self.process = host.start(host.build.program("forge"), tool=None)

    def throw(self, packet, source=None, seal=True, port=ROCE_PORT):
        source = source or self.source
        payload = sealed(source, self.victim, packet) if seal else packet
        seen = len(self.process.lines)
        self.process.say(json.dumps([source, PORT, self.victim, payload.hex(), port]))
        self.process.wait_line("sent", 10, since=seen)
