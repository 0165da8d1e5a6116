"""A capture of a run, read by tshark and by a reader of our own: RoCEv2 with the right fields and a matching ICRC."""

import ipaddress

import pytest

from harness import icrc, mesh, pcapng
from harness.network import run

COUNT = 100
QKEY = 0x11223344
UD_SEND_ONLY = 0x64


def capture(places, user, env, folder, family="v4"):
    """Member 0 sends COUNT datagrams to member 1, both write into one file. Returns the file and their addresses."""
    file = folder / "run.pcapng"
    members = mesh.start(places, user, {**env, "VERBENA_PCAP": str(file)}, ["--count", COUNT, "--bytes", 77],
                         family=family)
    addresses = [member.address() for member in members]
    mesh.send_counted(members)
    for member in members:
        member.stop()
    return file, addresses


def tshark(file, *fields):
    """The fields of every packet of a file, as tuples of text."""
    words = ["tshark", "-n", "-r", str(file), "-T", "fields"]
    for field in fields:
        words += ["-e", field]
    return [tuple(line.split("\t")) for line in run(words, seconds=60).splitlines() if line.strip()]


def check_with_tshark(file, addresses):
    rows = tshark(file, "udp.dstport", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.deth.q_key",
                  "infiniband.deth.srcqp", "infiniband.bth.padcnt", "_ws.malformed")
    data = [row for row in rows if row[0] == "4791"]
    assert len(data) >= COUNT, rows[:5]
    qpns = {int(qpn) for _, qpn in addresses}
    for port, opcode, destination, qkey, source, pad, malformed in data:
        assert int(opcode, 0) == UD_SEND_ONLY
        assert int(qkey, 0) == QKEY
        assert {int(destination, 0), int(source, 0)} == qpns
        assert int(pad, 0) == 3, "77 bytes are padded by 3"
        assert malformed == ""


def check_crc(file):
    packets = pcapng.packets(file)
    assert len(packets) >= COUNT
    for packet in packets:
        assert icrc.carried(packet) == icrc.computed(packet), packet.hex()


def check_addresses(file, addresses, host_side):
    expected = {str(ipaddress.IPv6Address(gid).ipv4_mapped or ipaddress.IPv6Address(gid)) for gid, _ in addresses}
    for packet in pcapng.packets(file):
        at, size = (12, 4) if packet[0] >> 4 == 4 else (8, 16)
        ends = {str(ipaddress.ip_address(packet[at + i * size:at + (i + 1) * size])) for i in (0, 1)}
        assert ends == expected, host_side


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_packets_on_the_wire_between_two_hosts(hosts, user, folder, family):
    file, addresses = capture(list(hosts), user, {}, folder, family)
    check_with_tshark(file, addresses)
    check_crc(file)
    check_addresses(file, addresses, family)


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_packets_between_processes_of_one_host(host, user, path, folder, family):
    file, addresses = capture([host] * 2, user, path, folder, family)
    check_with_tshark(file, addresses)
    check_crc(file)


def test_what_really_crosses_the_wire_has_a_matching_icrc(hosts, folder):
    """Not our own capture but tshark's, on the far interface: what the kernel made of it counts."""
    left, right = hosts
    file = folder / "wire.pcapng"
    sniffer = right.start(["tshark", "-q", "-i", "veth0", "-f", "udp port 4791", "-w", str(file)], tool=None)
    sniffer.wait_line("Capturing", 20)
    members = mesh.start([left, right], "nobody", {}, ["--count", COUNT, "--bytes", 77])
    addresses = [member.address() for member in members]
    mesh.send_counted(members)
    for member in members:
        member.stop()
    sniffer.kill(2)
    sniffer.finish(20, status=None)
    check_crc(file)
    check_with_tshark(file, addresses)


def test_the_independent_icrc_knows_published_packets():
    """A hardware NIC's CNP, and a frame of another implementation: the checker itself is checked."""
    cnp = bytes.fromhex("45c2003c718c4000401191610a0011010a001201" "000012b700280000" "8100ffff4000011800000000" +
                        "00" * 16 + "82fd002a")
    assert icrc.computed(cnp) == icrc.carried(cnp)
    head = bytes.fromhex("450000400478400040110000") + bytes([192, 168, 0, 7] * 2)
    udp = (49152).to_bytes(2, "big") + (4791).to_bytes(2, "big") + (44).to_bytes(2, "big") + bytes(2)
    bth = bytes([0x24, 0x60]) + b"\xff\xff" + (211).to_bytes(4, "big") + (13571856).to_bytes(4, "big")
    payload = bytes.fromhex("4630818be28935d90e9a95505401be885e500000")
    packet = head + udp + bth + payload + bytes.fromhex("78f353f3")
    assert icrc.computed(packet) == icrc.carried(packet)
