"""perftest's raw_ethernet_bw and raw_ethernet_lat, unmodified, between two hosts: whole Ethernet frames, as root."""

import json
import re

import pytest

from harness import mesh
from harness.build import ONE_USER
from harness.network import run
from harness.process import eventually

# Frames have no flow control: the sender must not be faster than a busy machine receives.
PACED = ["--rate_limit=5000", "--rate_units=p", "--rate_limit_type=SW", "--burst_size=8"]


def mac(host):
    return json.loads(host.ip("-j", "link", "show", "veth0"))[0]["address"]


def hears_frames(host):
    """Whether a packet socket of the host receives whatever arrives: somebody has a flow."""
    lines = run(["ip", "netns", "exec", host.namespace, "cat", "/proc/net/packet"]).splitlines()[1:]
    return any(line.split()[3] == "0003" for line in lines)


def pair(left, right, command, options):
    """A raw Ethernet program at both ends, which know each other's MAC address. What each says."""
    def words(here, there, role):
        return [command, role, "-B", mac(here), "-E", mac(there), "-F", "-n", "1000", *options]

    server = left.start(words(left, right, "--server"))
    eventually(lambda: hears_frames(left), 20, "the server has its flow")
    client = right.start(words(right, left, "--client"))
    return client.finish(20), server.finish(20)


def rows(output):
    return re.findall(r"^\s*(\d+)\s+(\d+)\s+\d+\.\d+", output, re.MULTILINE)


@pytest.mark.parametrize("size", ["64", "1500"])
def test_latency(plain_hosts, size):
    left, right = plain_hosts
    client, server = pair(left, right, "raw_ethernet_lat", ["-s", size])
    assert rows(client) == [(size, "1000")], client
    assert rows(server) == [(size, "1000")], server


@pytest.mark.parametrize("options", [[], ["-J", "10.77.0.1", "-j", "10.77.0.2", "-K", "9000", "-k", "9001"]],
                         ids=["ethernet", "udp"])
def test_bandwidth(plain_hosts, options):
    left, right = plain_hosts
    client, _ = pair(left, right, "raw_ethernet_bw", ["-s", "1024", *PACED, *options])
    assert rows(client) == [("1024", "1000")], client


def test_pyverbs_steers_frames_by_type_and_by_port(host):
    assert host.run(host.build.program("frames"), env={"VERBENA_DEVICES": "lo"}) == "ok"


TAKE = """
import socket
server = socket.create_server(("10.77.0.1", 7000))
print("up", flush=True)
client, _ = server.accept()
while client.recv(65536):
    pass
"""
GIVE = """
import socket
socket.create_connection(("10.77.0.1", 7000)).sendall(bytes(1 << 20))
"""


def test_what_the_kernel_has_put_together_is_dropped_by_name(plain_hosts):
    left, right = plain_hosts
    sniffer = left.start(["raw_ethernet_bw", "--server", "-B", mac(left), "-E", mac(right), "-F", "-n", "1000000",
                          "--sniffer"])
    eventually(lambda: hears_frames(left), 20, "the sniffer has its flow")
    sink = left.start(["/usr/bin/python3", "-c", TAKE], tool=None)
    sink.wait_line("up")
    right.run(["/usr/bin/python3", "-c", GIVE], tool=None)
    sink.finish(20)
    eventually(lambda: mesh.drops(left).get("frame_coalesced", 0) > 0, 20, "the frames above the MTU are counted")
    assert sniffer.running(), sniffer.describe()


@pytest.mark.skipif(ONE_USER, reason="there is one user")
def test_an_ordinary_user_is_told_that_he_may_not(plain_hosts):
    left, right = plain_hosts
    done = left.start(["raw_ethernet_bw", "--server", "-B", mac(left), "-E", mac(right), "-n", "1000"], user="nobody",
                      env={"VERBENA_LOG": "info"})
    output = done.finish(20, status=None)
    assert done.returncode() != 0
    assert "CAP_NET_RAW" in output, output
