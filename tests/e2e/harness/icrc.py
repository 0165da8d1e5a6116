"""The invariant CRC of RoCEv2, computed from a packet as it stands on the wire. Independent of the product.

CRC-32 of Ethernet over: eight bytes 0xff for the LRH that RoCEv2 has not; the IP header with everything that a router
may change set to ones; the UDP header with its checksum set to ones; the BTH with its fifth byte set to ones; the rest.
The result stands at the end, least significant byte first. InfiniBand Architecture volume 1, annex A17.3.3.
"""

import zlib


def parts(packet):
    """An IP packet -> (IP header, UDP header, UDP payload)."""
    version = packet[0] >> 4
    if version == 4:
        header = (packet[0] & 15) * 4
        assert packet[9] == 17, "not UDP"
    else:
        header = 40
        assert version == 6 and packet[6] == 17, "not UDP"
    length = int.from_bytes(packet[header + 4:header + 6], "big")
    return packet[:header], packet[header:header + 8], packet[header + 8:header + length]


def computed(packet):
    ip, udp, payload = parts(packet)
    ip, udp, bth = bytearray(ip), bytearray(udp), bytearray(payload[:12])
    if ip[0] >> 4 == 4:
        ip[1] = 0xff
        ip[8] = 0xff
        ip[10:12] = b"\xff\xff"
    else:
        ip[0] |= 0x0f
        ip[1:4] = b"\xff\xff\xff"
        ip[7] = 0xff
    udp[6:8] = b"\xff\xff"
    bth[4] = 0xff
    return zlib.crc32(b"\xff" * 8 + ip + udp + bth + payload[12:-4]).to_bytes(4, "little")


def carried(packet):
    return bytes(parts(packet)[2][-4:])
