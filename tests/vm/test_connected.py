"""Connections between Verbena's RNIC and the kernel's rxe on one wire, in both directions, with unmodified programs on both
ends: the ping-pongs of rdma-core and perftest over RC and UC."""

import re

import pytest

from guest.network import device_of
from harness.pair import sizes

PORT = 18515


@pytest.fixture(params=["to-the-kernel", "to-verbena"])
def server_and_client(request, kernel_and_host):
    kernel, host = kernel_and_host
    return (kernel, host) if request.param == "to-the-kernel" else (host, kernel)


def both(server_and_client, words, index_option, seconds=60, family="v4"):
    """A server and a client of one program; what both print."""
    server, client = server_and_client

    def start(host, *more):
        index = host.gid_index(getattr(host, family))
        return host.start([*words, "-d", device_of(host), "-p", PORT, index_option, index, *more])

    one = start(server)
    server.wait_listening(PORT, one)
    other = start(client, server.v4)
    output = other.finish(seconds)
    return one.finish(20), output


@pytest.mark.parametrize("family", ["v4", "v6"])
@pytest.mark.parametrize("program", ["ibv_rc_pingpong", "ibv_uc_pingpong"])
def test_pingpong(server_and_client, family, program):
    words = [program, "-n", "100", "-s", "20000", "-m", "4096", "-e", "-c"]
    for output in both(server_and_client, words, "-g", family=family):
        assert re.search(r"^100 iters in .* seconds", output, re.MULTILINE), output
        assert "invalid data" not in output, output


def test_srq_pingpong(server_and_client):
    words = ["ibv_srq_pingpong", "-n", "100", "-s", "5000", "-e", "-c", "-q", "4"]
    for output in both(server_and_client, words, "-g"):
        assert re.search(r"^100 iters in .* seconds", output, re.MULTILINE), output


PERFTEST = [("ib_send_lat", ["-e"]), ("ib_send_bw", ["-e"]), ("ib_write_lat", []), ("ib_write_bw", ["-q", "4"]),
            ("ib_read_lat", []), ("ib_read_bw", ["-b"])]


@pytest.mark.parametrize("program,options", PERFTEST, ids=[program for program, _ in PERFTEST])
def test_perftest(server_and_client, program, options):
    output = both(server_and_client, [program, "-F", "-s", "10001", "-n", "50", *options], "-x")[1]
    assert sizes(output) == [10001], output


@pytest.mark.parametrize("operation", ["CMP_AND_SWAP", "FETCH_AND_ADD"])
def test_perftest_of_atomics(server_and_client, operation):
    output = both(server_and_client, ["ib_atomic_lat", "-F", "-n", "50", "-A", operation], "-x")[1]
    assert sizes(output) == [8], output
