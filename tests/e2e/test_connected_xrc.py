"""XRC between unmodified programs: rdma-core's ping-pong, perftest and pyverbs, on one host by either way and between
two."""

import glob
import os
import re

import pytest

from harness.pair import Way, sizes


@pytest.fixture(autouse=True)
def no_files_of_another_user():
    """perftest names its XRC domains by files in /tmp and leaves them there."""
    for path in glob.glob("/tmp/xrc_domain_*"):
        os.unlink(path)


def ping(way, *options, server_options=()):
    for output in way.run(["ibv_xsrq_pingpong", *options], to_server=server_options):
        assert "success" in output.split(), output


def perf(way, program, *options):
    return way.run([program, "-F", "-c", "XRC", *options], index_option="-x", seconds=90)[1]


@pytest.mark.parametrize("wait", ["poll", "events"])
def test_pingpong_on_one_host(host, user, path, wait):
    ping(Way(host, host, "v4", user, path), "-n", "300", *(["-e"] if wait == "events" else []))


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_pingpong_between_two_hosts(hosts, user, family):
    ping(Way(*hosts, family, user), "-n", "100", "-s", "50000", "-e")


def test_pingpong_with_memory_on_demand(host, path):
    ping(Way(host, host, "v4", "nobody", path), "-n", "50", "-o")


PROGRAMS = ["ib_send_lat", "ib_send_bw", "ib_write_lat", "ib_write_bw", "ib_read_lat", "ib_read_bw"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_perftest_on_one_host(host, path, program):
    output = perf(Way(host, host, "v4", "nobody", path), program, "-s", "20000", "-n", "200")
    assert sizes(output) == [20000], output


@pytest.mark.parametrize("program", ["ib_atomic_lat", "ib_atomic_bw"])
def test_atomics_on_one_host(host, path, program):
    assert sizes(perf(Way(host, host, "v4", "nobody", path), program, "-n", "200")) == [8]


@pytest.mark.parametrize("options", [["-q", "8"], ["-b"], ["-e"]], ids=" ".join)
def test_bandwidth_options_on_one_host(host, path, options):
    output = perf(Way(host, host, "v4", "nobody", path), "ib_send_bw", "-s", "20000", "-n", "200", *options)
    assert sizes(output) == [20000], output


@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw"])
def test_perftest_between_two_hosts(hosts, program):
    options = [] if program == "ib_atomic_bw" else ["-s", "20000"]
    output = perf(Way(*hosts, "v6", "nobody"), program, *options, "-n", "200")
    assert sizes(output) == [8 if program == "ib_atomic_bw" else 20000], output


def test_pyverbs_sends_writes_and_reads(host, user, path):
    output = host.run(host.build.program("xrc"), user=user, env=path)
    assert re.findall(r"^\w+$", output, re.MULTILINE) == ["send", "write", "read", "refused", "ok"], output
