"""A device of two ports: two interfaces of one host under one RDMA name."""

import json
import re

import pytest

from harness import mesh
from harness.network import run
from harness.process import eventually

PORT = 18515
DEVICES = {"VERBENA_DEVICES": "one+two"}
BOTH_WIRES = {"VERBENA_DEVICES": "veth0+second"}
ADDRESSES = {1: "10.78.1.1", 2: "10.78.2.1"}
IPV4_INDEX = 1  # behind the link-local address


@pytest.fixture
def dual(host):
    """A host with the interfaces `one` and `two`, each on a wire that leads nowhere."""
    for number, name in ((1, "one"), (2, "two")):
        host.ip("link", "add", name, "type", "veth", "peer", "name", f"far{number}")
        host.ip("link", "set", f"far{number}", "up")
        host.ip("link", "set", name, "up")
        host.ip("address", "add", f"{ADDRESSES[number]}/24", "dev", name)
    return host


def test_the_example_sends_within_a_domain_and_is_refused_across_two(dual, user, path):
    example = str(dual.build.tree / "bin" / "dual_port_example")
    output = dual.run([example], user=user, env=path, tool=("run", "--devices", "one+two", "--"))
    assert 'port 2 received "hello from port 1"' in output, output
    assert 'port 1 received "hello from port 2"' in output, output
    assert "refused with status 2" in output, output


def test_doctor_explains_the_refusal(host, user):
    output = host.verbena("doctor", "explain", "wc", "2", user=user)
    assert "IBV_WC_LOC_QP_OP_ERR" in output and "another protection domain" in output, output
    assert "another port" in output, output


def test_the_example_says_what_it_needs(host, user):
    process = host.start([str(host.build.tree / "bin" / "dual_port_example")], user=user)
    process.finish(20, 1)
    assert "has one port" in process.describe()


def test_ibv_devinfo_shows_both_ports(dual, user):
    output = dual.run(["ibv_devinfo", "-v"], user=user, env=DEVICES)
    assert re.search(r"phys_port_cnt:\s+2", output), output
    ports = re.split(r"^\s+port:\s+", output, flags=re.MULTILINE)[1:]
    assert [port[0] for port in ports] == ["1", "2"]
    for number, port in enumerate(ports, 1):
        assert f"::ffff:{ADDRESSES[number]}" in port and "PORT_ACTIVE" in port, port


def test_the_tool_tells_of_both_ports(dual, user):
    devices = json.loads(dual.verbena("devices", "--json", user=user, env=DEVICES))
    rows = devices["devices"] if isinstance(devices, dict) else devices
    ours = [row for row in rows if row["name"] == "verbena0"]
    assert [(row["port"], row["netdev"]) for row in ours] == [(1, "one"), (2, "two")], ours
    output = dual.verbena("gids", user=user, env=DEVICES)
    for number in (1, 2):
        assert ADDRESSES[number] in output, output


@pytest.mark.parametrize("kind", ["ud", "rc"])
def test_pingpong_on_the_second_port(dual, user, path, kind):
    env = {**DEVICES, **path}
    command = [f"ibv_{kind}_pingpong", "-i", "2", "-g", str(IPV4_INDEX), "-p", str(PORT), "-n", "500"]
    server = dual.start(command, user=user, env=env)
    dual.wait_listening(PORT, server)
    client = dual.start([*command, "127.0.0.1"], user=user, env=env)
    for process in (client, server):
        assert "500 iters in" in process.finish(40), process.describe()


def test_what_comes_to_the_wrong_port_is_a_named_drop(dual, user, path):
    env = {**DEVICES, **path}
    options = ("--count", "20")
    sender = mesh.Member(dual, 0, IPV4_INDEX, user, env, [*options, "--port", "1"])
    receiver = mesh.Member(dual, 1, IPV4_INDEX, user, env, [*options, "--port", "2"])
    own_address, _ = sender.address()
    _, qpn = receiver.address()
    sender.process.say(f"peer 1 {own_address} {qpn}")  # port 1's address, a queue pair of port 2
    sender.process.say("go")
    receiver.process.say("go")
    dropped = eventually(lambda: mesh.drops(dual, user=user).get("wrong_port") == 20, 20, "20 wrong ports are counted")
    assert dropped and receiver.heard() == {}
    mesh.stop_all([sender, receiver])


def test_a_missing_interface_is_named_and_the_device_is_left_out(dual, user):
    process = dual.start(["ibv_devices"], user=user, env={"VERBENA_DEVICES": "one+nothing"}, tool=("run", "--"))
    process.finish(20, None)
    assert "nothing" in process.describe()


@pytest.fixture
def two_wires(hosts):
    """Two hosts with a second wire between them, and a server of the tool on the right one that has both ports."""
    left, right = hosts
    run(["ip", "link", "add", "second", "netns", left.namespace, "type", "veth", "peer", "name", "second", "netns",
         right.namespace])
    for last, host in enumerate(hosts, 1):
        host.ip("link", "set", "second", "up")
        host.ip("address", "add", f"10.78.3.{last}/24", "dev", "second")
    server = right.start([], tool=("ping", "--listen"), env=BOTH_WIRES)
    right.wait_listening(18519, server)
    return left, right, server


def test_ping_and_doctor_take_the_port_that_leads_to_the_address(two_wires):
    left, right, server = two_wires
    own = next(word.split("/")[0] for word in right.ip("-6", "-br", "addr", "show", "dev", "second").split() if word.startswith("fe80"))
    for address, port in ((right.v4, 1), ("10.78.3.2", 2), (f"{own}%second", 2)):
        report = json.loads(left.verbena("ping", address, "-c", "20", "-t", "5000", "--json", env=BOTH_WIRES))
        assert (report["port"], report["received"]) == (port, 20), report
    assert "verbena0 port 2 (second)" in left.verbena("ping", "10.78.3.2", "-c", "1", "-t", "5000", env=BOTH_WIRES)
    findings = json.loads(left.verbena("doctor", "10.78.3.2", "--json", status=None, env=BOTH_WIRES))["findings"]
    of = {finding["check"]: finding for finding in findings}
    assert "port 2" in of["source_for_peer"]["evidence"] and of["probe"]["result"] == "good", findings
    assert "answers on verbena0/2" in server.output(), server.output()
    assert "no port 3" in left.verbena("ping", "10.78.3.2", "--device", "verbena0/3", status=1, env=BOTH_WIRES)
