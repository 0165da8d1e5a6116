"""`verbena doctor`: all good where all is good, and the right finding where something was made wrong on purpose."""

import json

import pytest

from harness.build import ONE_USER
from harness.network import Host, run
from harness.process import eventually

WORSE = {"good": 0, "note": 1, "warning": 2, "failure": 3}


def doctor(host, *words, status=0, user="root", env=None):
    """The report of a visit that ends with `status`."""
    return json.loads(host.verbena("doctor", *words, "--json", status=status, user=user, env=env, seconds=60))


def result(report, check):
    """The worst result of a check, and all that was said about it; ("none", "") where it was not made."""
    found = [finding for finding in report["findings"] if finding["check"] == check]
    if not found:
        return "none", ""
    worst = max(found, key=lambda finding: WORSE[finding["result"]])["result"]
    return worst, " ".join(" ".join(finding.values()) for finding in found)


def serve(host, user="root", env=None):
    listener = host.start([], tool=("doctor", "--serve", "--once"), user=user, env=env)
    host.wait_listening(18519, listener)
    return listener


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_a_good_path_is_all_good_and_data_moves(hosts, user, family):
    left, right = hosts
    listener = serve(right, user)
    report = doctor(left, getattr(right, family), user=user)
    assert report["worst"] in ("good", "note"), report
    probes = [finding for finding in report["findings"] if finding["check"] == "probe"]
    assert len(probes) == 2 and all(finding["result"] == "good" for finding in probes), report
    assert "20 of 20 datagrams of 4096 bytes" in probes[1]["evidence"], report
    for check in ("source_for_peer", "gid_match", "route", "neighbour", "hop_limit", "path_mtu", "qkey", "handshake"):
        assert result(report, check)[0] == "good", (check, report)
    listener.finish(20)


def test_this_host_alone_is_looked_at_without_a_peer(host, user):
    report = doctor(host, user=user)
    for check in ("devices", "port_state", "link_layer", "gid_table", "gid_addresses", "memlock", "capabilities", "rdma_namespace",
                  "udp_4791", "loss_control", "resources"):
        assert result(report, check)[0] in ("good", "note"), (check, report)
    assert "verbena0" in host.verbena("doctor", user=user)


def test_a_running_server_that_is_an_older_or_plain_ping_does(hosts):
    left, right = hosts
    listener = right.start([], tool=("ping", "--listen", "--once"))
    right.wait_listening(18519, listener)
    assert result(doctor(left, right.v4), "probe")[0] == "good"
    listener.finish(20)


def test_without_a_server_it_says_so_and_how_to_start_one(hosts, user):
    left, right = hosts
    report = doctor(left, right.v4, user=user)
    kind, text = result(report, "handshake")
    assert kind == "note" and "verbena doctor --serve" in text, report
    assert result(report, "neighbour")[0] == "good" and result(report, "probe")[0] == "none", report


def test_a_link_that_is_down(host, user):
    host.ip("link", "set", "veth0", "down")
    kind, text = result(doctor(host, "--devices", "veth0", user=user, status=1), "port_state")
    assert kind == "failure" and "veth0" in text, text


def test_no_route(host, user):
    host.ip("route", "delete", "default")
    report = doctor(host, "192.0.2.1", user=user, status=1)
    assert result(report, "route")[0] == "failure", report
    assert result(report, "probe")[0] == "none", report


def test_a_peer_of_another_family(hosts, user):
    left, right = hosts
    left.ip("address", "delete", f"{left.v4}/24", "dev", "veth0")
    kind, text = result(doctor(left, right.v4, user=user, status=1), "gid_match")
    assert kind == "failure" and "the peer is IPv4" in text, text


def test_a_neighbour_that_does_not_answer(host, user):
    report = doctor(host, "10.77.0.77", user=user, status=1)
    kind, text = result(report, "neighbour")
    assert kind == "failure" and "10.77.0.77" in text, report


def test_a_smaller_mtu_at_the_peer(hosts, user):
    left, right = hosts
    right.ip("link", "set", "veth0", "mtu", "1500")
    listener = serve(right, user)
    report = doctor(left, right.v4, user=user, status=3)
    kind, text = result(report, "path_mtu")
    assert kind == "warning" and "1024" in text, report
    assert result(report, "probe")[0] == "good", report
    listener.finish(20)


def test_a_name_that_leads_to_no_gid_of_the_peer(hosts):
    left, right = hosts
    right.ip("address", "add", "10.99.0.2/32", "dev", "lo")
    listener = serve(right, env={"VERBENA_DEVICES": "veth0"})
    report = doctor(left, "10.99.0.2")
    kind, text = result(report, "peer_address")
    assert kind == "note" and "10.99.0.2 is no GID" in text, report
    assert result(report, "probe")[0] == "good", report
    listener.finish(20)


@pytest.fixture
def routed(request, build):
    """left - router - right, each on a network of its own."""
    hosts = [Host(build, 1), Host(build, 254), Host(build, 2)]
    left, router, right = hosts
    try:
        for number, (host, name) in enumerate(((left, "veth1"), (right, "veth2")), 1):
            run(["ip", "link", "add", "veth0", "netns", host.namespace, "type", "veth", "peer", "name", name, "netns",
                 router.namespace])
            for place, interface, last in ((host, "veth0", 2), (router, name, 1)):
                place.ip("link", "set", interface, "mtu", "9000", "up")
                place.ip("address", "add", f"10.78.{number}.{last}/24", "dev", interface)
            host.ip("route", "add", "default", "via", f"10.78.{number}.1")
        router.sysctl("net.ipv4.ip_forward=1")
        yield left, right
    finally:
        for host in hosts:
            if getattr(request.node, "failed_call", True):
                print(host.report())
            host.remove()


def test_hop_limit_one_ends_at_the_router(routed, user):
    left, right = routed
    listener = right.start([], tool=("doctor", "--serve"), user=user)
    right.wait_listening(18519, listener)
    good = doctor(left, "10.78.2.2", user=user)
    assert result(good, "hop_limit")[0] == "good" and result(good, "probe")[0] == "good", good
    assert "by the router 10.78.1.1" in result(good, "route")[1], good
    bad = doctor(left, "10.78.2.2", "--hop-limit", "1", user=user, status=1)
    assert result(bad, "hop_limit")[0] == "failure" and result(bad, "probe")[0] == "failure", bad


@pytest.mark.skipif(ONE_USER, reason="there is one user")
def test_another_user_holds_the_port(host):
    holder = host.start(["python3", "-c", "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
                         f"s.bind(('{host.v4}', 4791)); print('bound', flush=True); time.sleep(60)"], user="nobody", tool=None)
    holder.wait_line("bound")
    kind, text = result(doctor(host, "--log", "off", status=1), "udp_4791")
    assert kind == "failure" and "python3" in text, text


def test_errors_are_explained_with_the_attribute_that_is_wrong(host, user):
    index = host.gid_index(host.v4, user=user)
    output = host.verbena("doctor", "explain", "ibv_create_ah", "EINVAL", f"gid_index={index}", "dgid=fe80::1", "port=1",
                          "is_global=0", user=user)
    lines = [line for line in output.splitlines() if "WRONG" in line]
    assert any("gid_index" in line and "link-local" in line for line in lines), output
    assert any("is_global" in line for line in lines), output
    report = json.loads(host.verbena("doctor", "explain", "wc", "12", "vendor", "0x81", "--json", user=user))
    assert report == json.loads(host.verbena("doctor", "--json", "explain", "wc", "12", "vendor", "0x81", user=user))
    assert "IBV_WC_RETRY_EXC_ERR" in report["what"] and "ConnectX" in report["meaning"] and report["causes"], report


@pytest.mark.parametrize("words", [["explain"], ["explain", "coffee"], ["explain", "wc", "99"], ["explain", "ibv_create_ah", "EFOO"],
                                   ["explain", "ibv_create_ah", "EINVAL", "coffee=1"], ["explain", "event", "COFFEE"],
                                   ["--serve", "host"], ["--once"], ["host", "--dgid", "coffee"], ["--hop-limit", "256"]], ids=" ".join)
def test_a_wrong_command_line_is_usage_and_lists_what_is_known(host, words):
    assert "--help" in host.verbena("doctor", *words, status=2)


def test_a_server_that_is_stopped_ends_well(host):
    listener = host.start([], tool=("doctor", "--serve"))
    host.wait_listening(18519, listener)
    listener.kill(2)
    assert eventually(lambda: listener.returncode() is not None, 10, "it ends") and listener.returncode() == 0
