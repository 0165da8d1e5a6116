"""InfiniBand ports: unmodified programs that address by LID, on one host and between two, and what such a port tells."""

import json
import re

import pytest

from harness import forged, mesh
from harness.process import eventually

PORT = 18515


def port(lid, interface="veth0", **attributes):
    """The environment of a program whose device is an InfiniBand port."""
    words = [f"{interface}/link_layer=infiniband/lid={lid}", *(f"{key}={value}" for key, value in attributes.items())]
    return {"VERBENA_DEVICES": "/".join(words)}


def both(path, **attributes):
    """Of two processes on one host: two ports, LID 4 and LID 9."""
    return ({**path, **port(4, **attributes)}, {**path, **port(9, **attributes)})


def between(hosts):
    """Of two processes on two hosts, which know of each other's LID."""
    left, right = hosts
    return ({**port(4), "VERBENA_LIDS": f"9@{right.v4}"}, {**port(9), "VERBENA_LIDS": f"4@{left.v4}"})


def exchange(hosts, user, environments, command, seconds=60):
    """A server and its client; what the client says."""
    server, client = hosts
    one = server.start(command, user=user, env=environments[0])
    server.wait_listening(PORT, one)
    output = client.start([*command, server.v4], user=user, env=environments[1]).finish(seconds)
    one.finish(20)
    return output


def pingpong(kind, *options):
    return [f"ibv_{kind}_pingpong", "-p", str(PORT), "-n", "500", *options]


@pytest.mark.parametrize("kind", ["ud", "rc", "uc", "srq"])
def test_pingpongs_by_lid_between_two_processes(host, user, path, kind):
    output = exchange((host, host), user, both(path), pingpong(kind))
    assert re.search(r"remote address: LID 0x0004", output), output
    assert "iters in" in output, output


@pytest.mark.parametrize("kind", ["ud", "rc", "uc"])
def test_pingpongs_with_a_grh_between_two_processes(host, user, path, kind):
    assert "iters in" in exchange((host, host), user, both(path), pingpong(kind, "-g", "0"))


@pytest.mark.parametrize("kind", ["ud", "rc", "uc"])
@pytest.mark.parametrize("grh", [[], ["-g", "0"]], ids=["lid", "grh"])
def test_pingpongs_between_two_hosts(hosts, user, kind, grh):
    assert "iters in" in exchange(hosts, user, between(hosts), pingpong(kind, *grh))


def test_two_processes_share_a_port_and_its_lid(host, user, path):
    environment = {**path, **port(4)}
    assert "iters in" in exchange((host, host), user, (environment, environment), pingpong("rc"))


PERFTEST = [["ib_send_lat", "-c", "UD"], ["ib_send_bw", "-c", "UC", "-s", "8192", "-t", "5"],
            ["ib_send_bw"], ["ib_write_bw"], ["ib_write_lat"],
            ["ib_read_bw"], ["ib_read_lat"], ["ib_atomic_bw", "-A", "FETCH_AND_ADD"], ["ib_atomic_lat"],
            ["ib_write_bw", "-q", "16"], ["ib_send_lat", "-e"]]


@pytest.mark.parametrize("command", PERFTEST, ids=" ".join)
def test_perftest_by_lid_between_two_processes(host, one_user, path, command):
    output = exchange((host, host), one_user, both(path), [*command, "-F", "-n", "500", "-p", str(PORT)])
    assert "Link type       : IB" in output, output
    assert re.search(r"remote address: LID 0x04", output), output


@pytest.mark.parametrize("command", PERFTEST[:6], ids=" ".join)
def test_perftest_by_lid_between_two_hosts(hosts, one_user, command):
    output = exchange(hosts, one_user, between(hosts), [*command, "-F", "-n", "300", "-p", str(PORT)])
    assert re.search(r"remote address: LID 0x04", output), output


QPERF = ["rc_lat", "rc_bw", "rc_bi_bw", "uc_lat", "uc_bw", "uc_bi_bw", "ud_lat", "ud_bw", "ud_bi_bw", "rc_rdma_read_lat",
         "rc_rdma_read_bw", "rc_rdma_write_lat", "rc_rdma_write_bw", "rc_rdma_write_poll_lat", "uc_rdma_write_lat",
         "uc_rdma_write_bw", "uc_rdma_write_poll_lat", "rc_compare_swap_mr", "rc_fetch_add_mr", "ver_rc_compare_swap",
         "ver_rc_fetch_add"]
QPERF_PORT = 19765


def qperf(hosts, user, environments, tests):
    server, client = hosts
    one = server.start(["qperf", "-lp", str(QPERF_PORT)], user=user, env=environments[0])
    server.wait_listening(QPERF_PORT, one)
    output = client.start(["qperf", "-lp", str(QPERF_PORT), "-t", "1", server.v4, *tests], user=user,
                          env=environments[1]).finish(30 + 5 * len(tests))
    one.stop()
    return output


def measured(output):
    """The tests that told a figure above zero."""
    return re.findall(r"^(\w+):\n(?:\s+\w+\s+=.*\n)*?\s+(?:latency|bw|recv_bw|msg_rate)\s+=\s+[1-9]", output, re.MULTILINE)


# A second is the least that qperf takes for a test.
QPERF_BRIEFLY = ["rc_lat", "rc_bw", "uc_lat", "ud_lat", "rc_rdma_read_lat", "rc_rdma_write_bw", "ver_rc_fetch_add"]


@pytest.mark.parametrize("shared, tests", [("on", QPERF), ("off", QPERF_BRIEFLY)], ids=["shm", "udp"])
def test_qperf_between_two_processes(host, shared, tests):
    output = qperf((host, host), "nobody", both({"VERBENA_SHM": shared}), tests)
    assert measured(output) == tests, output


def test_qperf_between_two_hosts(hosts):
    assert measured(qperf(hosts, "nobody", between(hosts), QPERF_BRIEFLY)) == QPERF_BRIEFLY


def test_ibv_devinfo_tells_what_the_subnet_gave_the_port(host, user):
    output = host.run(["ibv_devinfo", "-v"], user=user,
                      env=port(8, lmc=2, sm_lid=3, sm_sl=5, subnet_prefix="fec0::", guid="0002c90300000001"))
    for wanted in (r"link_layer:\s+InfiniBand", r"port_lid:\s+8", r"port_lmc:\s+0x02", r"sm_lid:\s+3", r"sm_sl:\s+5",
                   r"node_guid:\s+0002:c903:0000:0001", r"pkey_tbl_len:\s+32", r"state:\s+PORT_ACTIVE",
                   r"GID\[\s*0\]:\s+fec0:0000:0000:0000:0002:c903:0000:0001"):
        assert re.search(wanted, output), f"{wanted} not in\n{output}"


def test_sysfs_says_the_same(host, user):
    code = """
base = "/sys/class/infiniband/verbena0/ports/1/"
for name in ("lid", "lid_mask_count", "sm_lid", "sm_sl", "link_layer", "pkeys/0", "pkeys/1", "pkeys/2",
             "gid_attrs/types/0"):
    print(name, open(base + name).read().strip())
"""
    output = host.run(["/usr/bin/python3", "-c", code], user=user,
                      env=port(8, lmc=2, sm_lid=3, sm_sl=5, pkeys="0xffff+0x8001"))
    assert output.splitlines()[-9:] == ["lid 0x8", "lid_mask_count 2", "sm_lid 0x3", "sm_sl 5", "link_layer InfiniBand",
                                        "pkeys/0 0xffff", "pkeys/1 0x8001", "pkeys/2 0x0000",
                                        "gid_attrs/types/0 IB/RoCE v1"], output


def test_sysfs_tells_what_the_subnet_file_says_before_the_device_is_open(host, user, folder):
    subnet = folder / "subnet"
    subnet.write_text("port verbena0 lid=12 sm_lid=7\n")
    subnet.chmod(0o666)
    code = 'print(*(open("/sys/class/infiniband/verbena0/ports/1/" + name).read().strip() for name in ("lid", "sm_lid")))'
    output = host.run(["/usr/bin/python3", "-c", code], user=user, env={**port(8), "VERBENA_SUBNET": str(subnet)})
    assert output.splitlines()[-1] == "0xc 0x7", output


def test_a_lid_that_another_port_has_is_refused_by_the_name_of_its_holder(host, user):
    one = host.start(pingpong("ud"), user=user, env=port(4, lmc=2))
    host.wait_listening(PORT, one)
    output = host.run(["ibv_devinfo"], user=user, env=port(6, guid="0002c90300000001"), status=None)
    assert re.search(r"LID 6 of .* clashes with LIDs 4 to 7 .*ibv_ud_pingpong", output), output
    one.stop()


def test_a_lid_of_another_host_is_refused(hosts):
    left, right = hosts
    output = left.run(["ibv_devinfo"], env={**port(9), "VERBENA_LIDS": f"9@{right.v4}"}, status=None)
    assert f"LID 9 is that of a port on ::ffff:{right.v4}" in output, output


@pytest.mark.parametrize("wrong,words", [
    ("veth0/link_layer=infiniband/lid=0", "is no unicast LID"),
    ("veth0/link_layer=infiniband/lid=5/lmc=1", "is no multiple of 2"),
    ("veth0/link_layer=infiniband/lmc=8", "must be from 0 to 7"),
    ("veth0/link_layer=token_ring", "must be ethernet or infiniband"),
    ("veth0/lid=4", "add link_layer=infiniband"),
    ("veth0/link_layer=infiniband/pkeys=0", "is no list of P_Keys"),
    ("veth0/link_layer=infiniband/sl=4", "is not known"),
])
def test_a_port_that_cannot_be_is_refused_in_words(host, wrong, words):
    output = host.start(["true"], env={"VERBENA_DEVICES": wrong}).finish(10, None)
    assert "VERBENA_DEVICES" in output and words in output, output


WATCH = """
import pyverbs.device as d
context = d.Context(name="verbena0")
print("port", context.query_port(1).lid)
while True:
    event = context.get_async_event()
    event.ack()
    port = context.query_port(1)
    print("event", event.event_type, "lid", port.lid, "sm_lid", port.sm_lid, "pkey", context.query_pkey(1, 1))
"""


def test_changes_in_the_subnet_file_are_events(host, user, folder):
    subnet = folder / "subnet"
    subnet.write_text("port verbena0 lid=4 sm_lid=1  # as declared, but the LID\n")
    subnet.chmod(0o666)
    program = host.start(["/usr/bin/python3", "-c", WATCH], user=user, env={**port(1), "VERBENA_SUBNET": str(subnet)})
    program.wait_line("port 4", 10)
    for text, event in (("lid=5 sm_lid=1", "event 11 lid 5"), ("lid=5 sm_lid=2", "event 13 lid 5 sm_lid 2"),
                        ("lid=5 sm_lid=2 pkeys=0xffff+0x8001", "event 12 lid 5 sm_lid 2 pkey 384")):
        subnet.write_text(f"port verbena0 {text}\n")
        program.wait_line(event, 10)
    subnet.write_text("port verbena0 lid=nonsense\n")
    eventually(lambda: "is no unicast LID" in program.output(), 10, "the log says what is wrong")
    program.stop()


class Datagrams:
    """programs/infiniband.py in a process: calls its methods."""

    def __init__(self, host, user, environment, *words):
        self.process = host.start([*host.build.program("infiniband"), *map(str, words)], user=user, env=environment)
        self.about = json.loads(self.process.wait_line("ready ", 20).split(" ", 1)[1])

    def __getattr__(self, method):
        def call(*arguments, **named):
            since = len(self.process.lines)
            self.process.say(json.dumps([method, *arguments, *([named] if named else [])]))
            return json.loads(self.process.wait_line("answer ", 20, since).split(" ", 1)[1])
        return call


def carry(sender, receiver, name, text="hello"):
    """A datagram by the sender's address handle; what the receiver has of it."""
    receiver.post()
    assert sender.send(name, receiver.about["qpn"], text) == 0
    return receiver.receive()


@pytest.fixture
def pair(host, user, path):
    return (Datagrams(host, user, {**path, **port(4)}), Datagrams(host, user, {**path, **port(8, lmc=2)}))


def test_a_datagram_by_lid_alone_has_no_grh_and_leaves_its_forty_bytes_untouched(pair):
    left, right = pair
    assert left.make("right", 10, sl=7) == 0
    got = carry(left, right, "right")
    assert got == {"status": 0, "slid": 4, "sl": 7, "path_bits": 2, "grh": False, "front": "5a" * 40, "text": "hello",
                   "src_qp": left.about["qpn"], "length": 45}
    assert right.make("left", 4, path_bits=3) == 0
    assert carry(right, left, "left")["slid"] == 11


def test_a_datagram_with_a_grh_has_it_as_it_was_sent(pair):
    left, right = pair
    assert left.make("right", 8, right.about["gid"]) == 0
    got = carry(left, right, "right")
    assert got["grh"] and got["slid"] == 4 and got["path_bits"] == 0
    # BTH, DETH, payload with pad, ICRC: 12 + 8 + 8 + 4 bytes behind it.
    gids = left.about["gid"].replace(":", "") + right.about["gid"].replace(":", "")
    assert got["front"] == "62812345" + "0020" + "1b" + "09" + gids


@pytest.mark.parametrize("grh", [False, True], ids=["lid", "grh"])
def test_an_answer_goes_by_what_the_completion_says(pair, grh):
    left, right = pair
    assert left.make("right", 9, right.about["gid"] if grh else None, sl=3) == 0
    carry(left, right, "right")
    right.answer("left")
    got = carry(right, left, "left", "back")
    assert (got["text"], got["slid"], got["sl"], got["grh"]) == ("back", 9, 3, grh)


@pytest.mark.parametrize("lid,gid,drop", [(4, "right", "gid_not_of_lid"), (12, None, "unknown_lid")])
def test_lid_and_gid_of_different_ports_make_a_handle_and_lose_the_datagram(host, user, pair, lid, gid, drop):
    left, right = pair
    receiver = left if gid else right
    sender = right if gid else left
    assert sender.make("astray", lid, right.about["gid"] if gid else None) == 0
    receiver.post()
    assert sender.send("astray", receiver.about["qpn"], "lost") == 0
    assert receiver.receive(1) is None
    assert mesh.drops(host, user=user)[drop] == 1


@pytest.mark.parametrize("first,second,arrives", [("0x8001", "0x8001", True), ("0x8001", "0x0001", True),
                                                 ("0x0001", "0x0001", False), ("0x8001", "0x8002", False)])
def test_partitions_keep_apart(host, user, first, second, arrives):
    left = Datagrams(host, user, port(4, pkeys=f"0xffff+{first}"), 1)
    right = Datagrams(host, user, port(9, pkeys=f"0xffff+{second}"), 1)
    left.make("right", 9)
    right.post()
    assert left.send("right", right.about["qpn"], "hello") == 0
    assert (right.receive(5 if arrives else 1) is not None) == arrives
    assert arrives or mesh.drops(host, user=user)["pkey_mismatch"] == 1


def test_addresses_that_no_port_can_have_are_refused(pair):
    left, right = pair
    assert left.make("zero", 0) == 22
    assert left.make("bits", 8, path_bits=1) == 22
    assert left.make("sl", 8, sl=16) == 22
    assert left.make("permissive", 0xffff) == left.make("group", 0xc005) == 22


def test_after_a_change_of_lid_old_addresses_lead_nowhere_and_new_ones_lead_there(host, user, folder):
    subnet = folder / "subnet"
    subnet.write_text("")
    subnet.chmod(0o666)
    left = Datagrams(host, user, port(4))
    right = Datagrams(host, user, {**port(9), "VERBENA_SUBNET": str(subnet)})
    left.make("right", 9)
    right.make("left", 4)
    assert carry(left, right, "right")["slid"] == 4
    subnet.write_text("port verbena0 lid=11\n")
    eventually(lambda: right.about_now()["lid"] == 11, 10, "the port has its new LID")
    assert carry(right, left, "left")["slid"] == 11
    right.post()
    left.send("right", right.about["qpn"], "lost")
    assert right.receive(1) is None
    assert mesh.drops(host, user=user)["unknown_lid"] == 1
    left.make("right", 11)
    assert carry(left, right, "right")["text"] == "hello"


def test_a_source_lid_is_believed_from_the_address_that_the_map_has_for_it(hosts):
    left, right = hosts
    stranger = "10.77.0.66"
    right.ip("address", "add", stranger + "/24", "dev", "veth0")
    victim = Datagrams(left, "root", {**port(4), "VERBENA_LIDS": f"9@{right.v4}"})
    attacker = forged.Attacker(right, stranger, left.v4)

    def throw(source_lid, source):
        packet = forged.infiniband_datagram(source_lid, 4, victim.about["qpn"], 0x1234, b"hello")
        attacker.throw(packet, source=source, seal=False, port=forged.INFINIBAND_PORT)

    victim.post()
    throw(9, right.v4)
    got = victim.receive()
    assert got and (got["slid"], got["text"]) == (9, "hello"), "the packet itself is good"
    victim.post()
    for number, (source_lid, source) in enumerate([(9, stranger), (4, stranger), (12, right.v4)]):
        throw(source_lid, source)
        eventually(lambda: mesh.drops(left).get("lid_not_of_source") == number + 1, 5, "it is dropped by its name")
    assert victim.receive(0.5) is None


SNIFF = """
import socket
packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x800))
packets.bind(("veth0", 0x800))
print("sniffing", flush=True)
seen = set()
count = 0
while count < 100:
    packet = packets.recv(9000)
    if packet[9] == 17 and packet[22:24] == (4797).to_bytes(2, "big"):
        seen.add(packet[1] & 3)
        count += 1
print("ecn", sorted(seen), flush=True)
"""


def test_there_is_no_congestion_control_and_the_carrier_is_not_ecn_capable(hosts):
    left, right = hosts
    one, other = ({**environment, "VERBENA_IMPAIR": "mark=100%,seed=3"} for environment in between(hosts))
    sniffer = right.start(["/usr/bin/python3", "-c", SNIFF])
    sniffer.wait_line("sniffing", 10)
    command = ["ibv_rc_pingpong", "-p", str(PORT), "-n", "10000000", "-g", "0"]
    server = left.start(command, env=one)
    left.wait_listening(PORT, server)
    client = right.start([*command, left.v4], env=other)
    assert sniffer.wait_line("ecn", 20) == "ecn [0]"
    processes = json.loads(left.verbena("drops", "--all", "--json"))["processes"]
    counters = [device["counters"] for process in processes for device in process["devices"]]
    assert any(counted["received_packets"] for counted in counters), counters
    for counted in counters:
        assert not any(counted[name] for name in ("np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled")), counted
    client.stop()
    server.stop()


TWO_PORTS = {"VERBENA_DEVICES": "veth0/link_layer=infiniband/lid=4,veth0/link_layer=infiniband/lid=5"}


@pytest.mark.parametrize("lids", [(5, 6), (5, 4), (6, 4), (8, 4)], ids=str)
def test_ports_of_one_process_change_their_lids_together(host, user, folder, lids):
    subnet = folder / "subnet"
    subnet.write_text("")
    subnet.chmod(0o666)
    both_ports = Datagrams(host, user, {**TWO_PORTS, "VERBENA_SUBNET": str(subnet)})
    both_ports.open("verbena1")
    subnet.write_text(f"port verbena0 lid={lids[0]}\nport verbena1 lid={lids[1]}\n")
    eventually(lambda: (both_ports.about_now()["lid"], both_ports.open("verbena1")) == lids, 10, "both have their LIDs")


def test_ports_of_two_processes_swap_their_lids(host, user, folder):
    subnet = folder / "subnet"
    subnet.write_text("")
    subnet.chmod(0o666)
    guids = "000000000000000a", "000000000000000b"
    ends = [Datagrams(host, user, {**port(lid, guid=guid), "VERBENA_SUBNET": str(subnet)})
            for lid, guid in zip((4, 5), guids)]
    subnet.write_text(f"port {guids[0]} lid=5\nport {guids[1]} lid=4\n")
    eventually(lambda: [end.about_now()["lid"] for end in ends] == [5, 4], 15, "each has the other's LID")


def test_one_port_has_one_range_of_lids(host, user):
    one = host.start(pingpong("ud"), user=user, env=port(4))
    host.wait_listening(PORT, one)
    output = host.run(["ibv_devinfo"], user=user, env=port(4, lmc=1), status=None)
    assert re.search(r"LIDs 4 to 5 of .* clash with LID 4 ", output), output
    one.stop()


def test_an_old_address_handle_sends_from_its_own_port_whoever_has_its_old_lid(host, user, folder):
    subnet = folder / "subnet"
    subnet.write_text("")
    subnet.chmod(0o666)
    left = Datagrams(host, user, {**TWO_PORTS, "VERBENA_SUBNET": str(subnet)})
    assert left.open("verbena1") == 5
    right = Datagrams(host, user, port(9))
    left.make("right", 9)
    assert carry(left, right, "right")["slid"] == 4
    subnet.write_text("port verbena0 lid=6\n")
    eventually(lambda: left.about_now()["lid"] == 6, 10, "the port has its new LID")
    subnet.write_text("port verbena0 lid=6\nport verbena1 lid=4\n")
    eventually(lambda: left.open("verbena1") == 4, 10, "the other port has the old one")
    assert carry(left, right, "right")["slid"] == 6


def test_verbena_ping_and_its_directory_by_lid(host, user, path):
    server = host.start([], tool=("ping", "--listen"), user=user, env={**path, **port(9)})
    server.wait_line("", 10)
    output = host.verbena("ping", host.v4, "-c", "20", user=user, env={**path, **port(4)})
    assert "20 received" in output or "0% loss" in output, output
    server.stop()


def doctor(host, peer, env):
    """What the doctor finds on the way to a peer: the finding of each check, the worst where there are several."""
    order = ["good", "note", "warning", "failure"]
    findings = json.loads(host.verbena("doctor", peer, "--json", status=None, env=env))["findings"]
    return {finding["check"]: finding for finding in sorted(findings, key=lambda finding: order.index(finding["result"]))}


def test_the_tool_speaks_of_lids_and_the_doctor_of_what_is_wrong_with_them(hosts):
    left, right = hosts
    here, there = between(hosts)
    server = right.start([], tool=("doctor", "--serve", "--json"), env=there)
    right.wait_listening(18519, server)
    report = json.loads(left.verbena("ping", right.v4, "-c", "5", "-t", "5000", "--json", env=here))
    assert (report["source"], report["destination"], report["received"]) == ("LID 4", "LID 9", 5), report
    assert doctor(left, right.v4, here)["probe"]["result"] == "good"
    silent = doctor(left, right.v4, port(4))["probe"]  # nobody says where LID 9 is
    assert silent["result"] == "failure" and "LID 9" in silent["cause"] and "4791" not in silent["cause"], silent
    equal = doctor(left, right.v4, port(9))["lid"]
    assert equal["result"] == "failure" and "own" in equal["evidence"], equal
    unlike = doctor(left, right.v4, {"VERBENA_DEVICES": "veth0"})
    assert "InfiniBand" in unlike["peer_link_layer"]["evidence"] and "probe" not in unlike, unlike


def test_a_subnet_file_that_speaks_of_no_port_is_warned_of_once(host, folder):
    (folder / "subnet").write_text("port verbena7 lid=5\nport verbena0 lid=4 lid=6\n")
    said = host.run(["ibv_devinfo"], env={**port(4), "VERBENA_SUBNET": str(folder / "subnet")})
    assert said.count('subnet:1: "verbena7" names no port') == 1 and said.count("subnet:2: lid=6") == 1, said
