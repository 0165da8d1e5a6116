"""librdmacm, unmodified from Debian: its own programs, perftest over it, and libfabric, in one host and between two."""

import re
import time

import pytest

from harness.pair import Way, sizes
from harness.process import eventually
from harness.quiet import processor_ticks, sleeps_for

# As the server's words; the client's are the same and where the server is.
PAIRS = {
    "rping": (["rping", "-s", "-v", "-C", "10", "-a", "{server}"], ["rping", "-c", "-v", "-C", "10", "-a", "{server}"],
              r"rdma-ping-9"),
    "ucmatose": (["ucmatose", "-c", "4"], ["ucmatose", "-c", "4", "-s", "{server}"], r"return status 0"),
    "udaddy": (["udaddy", "-c", "2"], ["udaddy", "-c", "2", "-s", "{server}"], r"return status 0"),
    "rdma_client": (["rdma_server"], ["rdma_client", "-s", "{server}"], r"end 0"),
    "riostream": (["riostream", "-C", "10", "-S", "64"], ["riostream", "-C", "10", "-S", "64", "-s", "{server}"],
                  r"^custom\s+64\s+10"),
    "fi_pingpong_msg": (["fi_pingpong", "-p", "verbs", "-e", "msg", "-I", "100", "-S", "4096"],
                        ["fi_pingpong", "-p", "verbs", "-e", "msg", "-I", "100", "-S", "4096", "{server}"],
                        r"^4k\s+100\s+=100"),
    "fi_pingpong_dgram": (["fi_pingpong", "-p", "verbs", "-e", "dgram", "-d", "verbena0-dgram", "-I", "100", "-S", "64"],
                          ["fi_pingpong", "-p", "verbs", "-e", "dgram", "-d", "verbena0-dgram", "-I", "100", "-S", "64",
                           "{server}"], r"^64\s+100\s+=100"),
    "fi_pingpong_rdm": (["fi_pingpong", "-p", "verbs;ofi_rxd", "-e", "rdm", "-d", "verbena0-dgram", "-I", "100", "-S", "64"],
                        ["fi_pingpong", "-p", "verbs;ofi_rxd", "-e", "rdm", "-d", "verbena0-dgram", "-I", "100", "-S", "64",
                         "{server}"], r"^64\s+100\s+=100"),
}


def meet(way, server_words, client_words, marks=0):
    """Starts both, the client when the server is there; returns what each printed."""
    place = {"server": way.addresses[0]}
    one = way.start(0, [word.format(**place) for word in server_words])
    wait_ready(way, one, marks)
    other = way.start(1, [word.format(**place) for word in client_words])
    output = other.finish(60)
    return one.finish(30), output


def wait_ready(way, process, marks):
    """Until the server listens: for rdma_cm, or on its TCP port of control."""
    if marks:
        way.server.wait_listening(marks, process)
        return

    def services():
        return [name for name in way.server.unix_names() if "/cm/service/" in name]

    def settled():
        """Some bind a port to see which device they have, give it up, and bind again what they listen at."""
        before = services()
        return before and sleeps_for(process.pid, 0.4) and services() == before

    eventually(lambda: not process.running() or settled(), 20, "a service has a name, and its process waits")


def run_pair(way, name):
    server_words, client_words, proof = PAIRS[name]
    marks = 47592 if name.startswith("fi_") else 0
    for output in meet(way, server_words, client_words, marks):
        assert re.search(proof, output, re.MULTILINE), output


@pytest.mark.parametrize("name", PAIRS)
def test_programs_of_one_host(host, user, name):
    run_pair(Way(host, host, "v4", user), name)


@pytest.mark.parametrize("name", PAIRS)
def test_programs_of_two_hosts(hosts, user, name):
    run_pair(Way(*hosts, "v4", user), name)


@pytest.mark.parametrize("name", ["rping", "ucmatose", "udaddy"])
def test_programs_over_ipv6(hosts, name):
    if name == "rping":
        run_pair(Way(*hosts, "v6"), name)
        return
    words, others, proof = PAIRS[name]
    way = Way(*hosts, "v6")
    for output in meet(way, [*words, "-f", "ip6", "-b", "{server}"], [*others, "-f", "ip6"]):
        assert re.search(proof, output, re.MULTILINE), output


def test_perftest_connects_by_rdma_cm(hosts, user):
    """It connects twice, and does not wait with the second until its server listens again: then it ends, and begins anew."""
    way = Way(*hosts, "v4", user)
    words = ["ib_write_bw", "-R", "-n", "500", "-F"]
    for _ in range(4):
        one = way.start(0, words)
        wait_ready(way, one, 0)
        output = way.start(1, [*words, way.addresses[0]]).finish(60, status=None)
        if "RDMA_CM_EVENT_REJECTED; error: 8" not in output:
            break
        one.stop()
    assert sizes(output) == [65536], output
    assert sizes(one.finish(30)) == [65536], one.describe()


def test_nobody_listens(hosts):
    """The other host has a process of ours, and nobody at that port: refused at once, not timed out."""
    way = Way(*hosts, "v4")
    words, others, _ = PAIRS["rping"]
    one = way.start(0, [word.format(server=way.addresses[0]) for word in words])
    wait_ready(way, one, 0)
    other = way.start(1, ["rping", "-c", "-a", way.addresses[0], "-p", "7999"])
    output = other.finish(10, status=None)
    assert "RDMA_CM_EVENT_REJECTED" in output, output
    way.start(1, [word.format(server=way.addresses[0]) for word in others]).finish(30)
    one.finish(20)


def test_who_listens_uses_no_processor(host):
    listener = host.start(["rping", "-s", "-a", host.v4])
    wait_ready(Way(host, host), listener, 0)
    before = processor_ticks(listener.pid)
    time.sleep(2)
    assert processor_ticks(listener.pid) - before <= 1


def test_a_loopback_address_is_that_of_the_first_device(host):
    way = Way(host, host)
    way.addresses = ("127.0.0.1", "127.0.0.1")
    run_pair(way, "rping")


def test_lost_messages_are_sent_again(hosts):
    way = Way(*hosts, "v4", env={"VERBENA_IMPAIR": "loss=20%,seed=7"})
    run_pair(way, "rdma_client")
