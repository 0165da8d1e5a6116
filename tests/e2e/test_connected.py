"""Connections between unmodified programs: the ping-pongs of rdma-core and perftest over RC and UC, on one host by either
way and between two hosts."""

import os
import re

import pytest

from harness.pair import Way, sizes

EVERY_SIZE = [2**power for power in range(1, 24)]
# perftest spins a quarter of a second for each size it tells of, to learn the processor's frequency.
LONG = "VERBENA_SOAK_SECONDS" in os.environ


def ping(way, program, iterations, *options):
    for output in way.run([program, "-n", iterations, *options]):
        assert re.search(rf"^{iterations} iters in .* seconds", output, re.MULTILINE), output
        assert "invalid data" not in output, output


def perf(way, program, *options, seconds=90):
    """What the client prints."""
    return way.run([program, "-F", *options], index_option="-x", seconds=seconds)[1]


# --- ibverbs-utils

PINGPONGS = ["ibv_rc_pingpong", "ibv_uc_pingpong"]


@pytest.mark.parametrize("wait", ["poll", "events"])
@pytest.mark.parametrize("program", PINGPONGS)
def test_pingpong_on_one_host(host, user, path, program, wait):
    ping(Way(host, host, "v4", user, path), program, 200, "-c", *(["-e"] if wait == "events" else []))


# UC resends nothing, and the socket of an unprivileged user holds some fifty datagrams: a UC message over UDP is short.
@pytest.mark.parametrize("program,options", [("ibv_rc_pingpong", ["-s", "1000001", "-m", "4096"]),
                                             ("ibv_rc_pingpong", ["-N"]),
                                             ("ibv_rc_pingpong", ["-m", "256", "-s", "5000"]),
                                             ("ibv_uc_pingpong", ["-s", "1"]),
                                             ("ibv_uc_pingpong", ["-m", "256", "-s", "5000"])])
def test_pingpong_of_other_sizes_and_calls(host, path, program, options):
    ping(Way(host, host, "v6", "nobody", path), program, 50, "-c", *options)


@pytest.mark.parametrize("family", ["v4", "v6"])
@pytest.mark.parametrize("program", PINGPONGS)
def test_pingpong_between_two_hosts(hosts, user, family, program):
    ping(Way(*hosts, family, user), program, 200, "-c", "-e", "-m", "4096", "-s", "50000")


@pytest.mark.parametrize("program", PINGPONGS)
def test_pingpong_over_ordinary_frames(plain_hosts, program):
    ping(Way(*plain_hosts), program, 200, "-c", "-m", "1024", "-s", "20000")


@pytest.mark.parametrize("wait", ["poll", "events"])
def test_srq_pingpong_on_one_host(host, user, path, wait):
    ping(Way(host, host, "v4", user, path), "ibv_srq_pingpong", 500, "-c", *(["-e"] if wait == "events" else []))


def test_srq_pingpong_between_two_hosts(hosts):
    ping(Way(*hosts, "v6", "nobody"), "ibv_srq_pingpong", 200, "-c", "-q", "16")


# --- perftest

MESSAGES = ["ib_send_lat", "ib_send_bw", "ib_write_lat", "ib_write_bw"]
READS = ["ib_read_lat", "ib_read_bw"]


@pytest.mark.parametrize("program,shared", [("ib_send_lat", "off"), ("ib_send_bw", "on"), ("ib_write_bw", "off"),
                                            ("ib_read_bw", "on")])
def test_every_size_to_8_mb_on_one_host(host, program, shared):
    output = perf(Way(host, host, "v4", "nobody", {"VERBENA_SHM": shared}), program, "-a", "-n", "10")
    assert sizes(output) == EVERY_SIZE, output


@pytest.mark.parametrize("program", ["ib_read_bw"])
def test_every_size_to_8_mb_between_two_hosts(hosts, program):
    output = perf(Way(*hosts), program, "-a", "-n", "10")
    assert sizes(output) == EVERY_SIZE, output


def test_every_size_to_8_mb_over_uc(host):
    output = perf(Way(host, host), "ib_write_bw", "-c", "UC", "-a", "-n", "10")
    assert sizes(output) == EVERY_SIZE, output


if LONG:  # make soak
    @pytest.mark.parametrize("program", MESSAGES + READS)
    def test_every_size_every_way(host, hosts, user, path, program):
        for way in (Way(host, host, "v6", user, path), Way(*hosts, "v4", user), Way(*hosts, "v6", user)):
            assert sizes(perf(way, program, "-a", "-n", "100", seconds=300)) == EVERY_SIZE


@pytest.mark.parametrize("operation", ["CMP_AND_SWAP", "FETCH_AND_ADD"])
@pytest.mark.parametrize("program", ["ib_atomic_lat", "ib_atomic_bw"])
def test_atomics_on_one_host(host, path, program, operation):
    output = perf(Way(host, host, "v4", "nobody", path), program, "-A", operation, "-n", "200")
    assert sizes(output) == [8], output


@pytest.mark.parametrize("program", ["ib_atomic_lat", "ib_atomic_bw"])
def test_atomics_between_two_hosts(hosts, program):
    output = perf(Way(*hosts, "v6"), program, "-A", "FETCH_AND_ADD", "-n", "200")
    assert sizes(output) == [8], output


# Messages of several packets, as many in flight as the depths allow.
MANY = ["-s", "20000", "-n", "200"]


@pytest.mark.parametrize("options", [["-e"], ["-q", "64"], ["-b"], ["-b", "-q", "8", "-e"], ["-m", "256"]], ids=" ".join)
@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw", "ib_read_bw"])
def test_bandwidth_options_on_one_host(host, path, program, options):
    if program != "ib_send_bw" and "-e" in options:
        options = [option for option in options if option != "-e"] + ["-l", "4"]
    output = perf(Way(host, host, "v4", "nobody", path), program, *MANY, *options)
    assert sizes(output) == [20000], output


# A write has no event at the other end.
@pytest.mark.parametrize("options", ["-I 64", "-I 512 -s 512"])
@pytest.mark.parametrize("program", ["ib_send_lat", "ib_send_lat -e", "ib_write_lat"])
def test_inline_and_events_on_one_host(host, path, program, options):
    program, *events = program.split()
    options = [*events, *options.split()]
    output = perf(Way(host, host, "v6", "root", path), program, "-s", "64", "-n", "500", *options)
    assert len(sizes(output)) == 1, output


@pytest.mark.parametrize("command", ["ib_send_bw", "ib_send_bw -e", "ib_send_bw -q 16", "ib_send_lat",
                                     "ib_send_lat -e"])
def test_shared_receive_queue(host, path, command):
    program, *options = command.split()
    output = perf(Way(host, host, "v4", "nobody", path), program, *MANY, "--use-srq", *options)
    assert sizes(output) == [20000], output


@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw", "ib_send_lat", "ib_write_lat"])
def test_uc_messages(host, path, program):
    output = perf(Way(host, host, "v4", "nobody", path), program, "-c", "UC", "-s", "8192", "-n", "10", "-t", "5")
    assert sizes(output) == [8192], output


@pytest.mark.parametrize("options", [["-q", "64"], ["-b"], ["-e"], ["--use-srq"]], ids=" ".join)
def test_send_options_between_two_hosts(hosts, options):
    output = perf(Way(*hosts, "v6", "nobody"), "ib_send_bw", *MANY, *options)
    assert sizes(output) == [20000], output


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw"])
@pytest.mark.parametrize("options", [["-q", "64"], ["-b"]], ids=" ".join)
def test_one_sided_options_between_two_hosts(hosts, program, options):
    output = perf(Way(*hosts, "v4", "nobody"), program, *MANY, *options)
    assert sizes(output) == [20000], output
