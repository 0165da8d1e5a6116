"""Cases of docs/cases.md about GIDs that need a network of their own."""

import json

import pytest

from harness.network import run


def test_a_host_with_ipv6_only_has_its_addresses_listed_without_noise_and_reaches_its_peer(hosts, user):
    left, right = hosts
    for host in hosts:
        host.ip("address", "delete", f"{host.v4}/24", "dev", "veth0")
    said = left.verbena("gids", user=user)
    lines = said.splitlines()
    assert left.v6 in said and left.v4 not in said, said
    assert lines[0].startswith("DEVICE") and all(line.startswith("verbena") for line in lines[1:]), said
    listener = right.start([], tool=("ping", "--listen", "--once"), user=user)
    right.wait_listening(18519, listener)
    report = json.loads(left.verbena("ping", right.v6, "--json", "-c", "100", "--timeout", "5000", user=user))
    listener.finish(20)
    assert report["received"] == 100, report


@pytest.fixture
def two_wires(hosts):
    """Both hosts with a second interface: the default route leaves by the first, which is also listed first."""
    left, right = hosts
    run(["ip", "link", "add", "veth1", "netns", left.namespace, "type", "veth", "peer", "name", "veth1", "netns",
         right.namespace])
    for host, address in ((left, "10.78.0.1/24"), (right, "10.78.0.2/24")):
        host.ip("link", "set", "veth1", "mtu", "9000", "up")
        host.ip("address", "add", address, "dev", "veth1")
    return left, right


def test_of_two_devices_that_which_the_route_leaves_by_is_taken(two_wires, user):
    left, right = two_wires
    listener = right.start([], tool=("ping", "--listen", "--device", "verbena1"), user=user)
    right.wait_listening(18519, listener)
    assert '"verbena0"' in left.verbena("devices", "--json", user=user)
    report = json.loads(left.verbena("ping", "10.78.0.2", "--json", "-c", "100", "--timeout", "5000", user=user))
    assert report["received"] == 100 and report["device"] == "verbena1", report
    report = json.loads(left.verbena("doctor", "10.78.0.2", "--json", user=user, seconds=60))
    assert report["worst"] in ("good", "note"), report
    probes = [finding for finding in report["findings"] if finding["check"] == "probe"]
    assert probes and all(finding["result"] == "good" for finding in probes), report
    sources = [finding for finding in report["findings"] if finding["check"] == "source_for_peer"]
    assert "verbena1" in json.dumps(sources), report


REFUSED = """
from pyverbs.addr import AH, AHAttr, GlobalRoute
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError

context = Context(name="verbena0")
domain = PD(context)
for index in [200] * 3 + list(range(150, 190)):
    try:
        AH(domain, attr=AHAttr(port_num=1, is_global=1, gr=GlobalRoute(dgid=context.query_gid(1, 0), sgid_index=index)))
        raise SystemExit(f"made with the index {index}")
    except PyverbsRDMAError as error:
        assert "Invalid argument" in str(error), error
"""


def test_why_an_address_handle_is_refused_is_told_unasked_each_reason_once(host, user):
    said = host.run(["/usr/bin/python3", "-c", REFUSED], user=user)
    assert said.count("source GID index 200 is empty") == 1, said
    assert said.count("is empty") == 20 and said.count("VERBENA_LOG=info") == 1, said
    assert host.run(["/usr/bin/python3", "-c", REFUSED], user=user, env={"VERBENA_LOG": "info"}).count("is empty") == 43
