"""Reads pcapng files: the packets, whole, as IP packets. Independent of the product."""

import struct

SECTION, INTERFACE, ENHANCED = 0x0A0D0D0A, 1, 6
ETHERNET, RAW, RAW_IPV4, RAW_IPV6 = 1, 101, 228, 229


def packets(path):
    """The IP packets of all enhanced packet blocks, in the order of the file."""
    data = path.read_bytes()
    order, links, found, at = "<", [], [], 0
    while at < len(data):
        kind = struct.unpack_from("<I", data, at)[0]
        if kind == SECTION:
            order = "<" if struct.unpack_from("<I", data, at + 8)[0] == 0x1A2B3C4D else ">"
            links = []
        kind, length = struct.unpack_from(order + "II", data, at)
        assert length >= 12 and length % 4 == 0 and at + length <= len(data), f"block at {at} is broken"
        assert struct.unpack_from(order + "I", data, at + length - 4)[0] == length, f"block at {at} ends wrongly"
        if kind == INTERFACE:
            links.append(struct.unpack_from(order + "H", data, at + 8)[0])
        elif kind == ENHANCED:
            interface, _, _, captured, original = struct.unpack_from(order + "IIIII", data, at + 8)
            assert captured == original, "a packet was cut"
            frame = data[at + 28:at + 28 + captured]
            found.append(frame[14:] if links[interface] == ETHERNET else frame)
        at += length
    return found
