"""Connections by rdma_cm between Verbena's connection manager and the kernel's, over rxe, in both directions: unmodified
programs of librdmacm on both ends."""

import os
import re
import time

import pytest

from guest.network import Kernel
from harness.network import run
from harness.pair import sizes
from harness.process import Failed, eventually


# An emulated machine is slow: `make vm-test` runs all of them, the CI one of each kind.
ALL = os.environ.get("VERBENA_VM_TESTS") == "all"
FAMILIES = ["v4", "v6"] if ALL else ["v4"]


@pytest.fixture(params=["to-the-kernel", "to-verbena"])
def server_and_client(request, kernel_and_host):
    kernel, host = kernel_and_host
    return (kernel, host) if request.param == "to-the-kernel" else (host, kernel)


def wait_listening(host, process):
    """Until somebody listens. Of the kernel that is told; of Verbena's, that a port has a name."""
    def listens():
        if not process.running():
            raise Failed(f"it ended before it listened\n{process.describe()}")
        if isinstance(host, Kernel):
            return "LISTEN" in run(["rdma", "resource", "show", "cm_id"])
        return any("/cm/service/" in name for name in host.unix_names())

    eventually(listens, 20, "the server listens")
    time.sleep(1)  # some bind a port to see which device they have, give it up, and bind again


def both(server_and_client, words, others, family="v4", seconds=30):
    """A server and a client; what both print."""
    server, client = server_and_client
    address = getattr(server, family)
    one = server.start([word.format(server=address) for word in words])
    wait_listening(server, one)
    other = client.start([word.format(server=address) for word in others])
    output = other.finish(seconds)
    return one.finish(10), output


@pytest.mark.parametrize("family", FAMILIES)
def test_rping(server_and_client, family):
    words = ["rping", "-v", "-C", "10", "-S", "4000", "-a", "{server}"]
    for output in both(server_and_client, [*words, "-s"], [*words, "-c"], family):
        assert "rdma-ping-9" in output, output


@pytest.mark.parametrize("program", ["ucmatose", "udaddy"])
def test_connections_and_datagrams(server_and_client, program):
    words = [program, "-c", "3", "-C", "5"]
    for output in both(server_and_client, words, [*words, "-s", "{server}"]):
        assert "return status 0" in output, output


def check_a_synchronous_identifier(server_and_client):
    for output in both(server_and_client, ["rdma_server"], ["rdma_client", "-s", "{server}"]):
        assert "end 0" in output, output


def check_a_socket_of_streams(server_and_client):
    words = ["riostream", "-C", "10", "-S", "64"]
    for output in both(server_and_client, words, [*words, "-s", "{server}"]):
        assert re.search(r"^custom\s+64\s+10", output, re.MULTILINE), output


def check_perftest(server_and_client):
    """It connects twice, and does not wait with the second until its server listens again: then it ends, and begins anew."""
    words = ["ib_write_bw", "-R", "-F", "-s", "10001", "-n", "50"]
    server, client = server_and_client
    for _ in range(4):
        one = server.start(words)
        wait_listening(server, one)
        output = client.start([*words, server.v4]).finish(30, status=None)
        if "RDMA_CM_EVENT_REJECTED; error: 8" not in output:
            break
        one.stop()
    assert sizes(output) == [10001], output
    one.finish(10)


def test_nobody_listens_at_that_port(server_and_client):
    """Rejected at once, and the server goes on."""
    server, client = server_and_client
    address = server.v4
    one = server.start(["rping", "-s", "-v", "-C", "2", "-a", address])
    wait_listening(server, one)
    output = client.start(["rping", "-c", "-a", address, "-p", "7999"]).finish(10, status=None)
    assert "RDMA_CM_EVENT_REJECTED, error 8" in output, output
    client.start(["rping", "-c", "-v", "-C", "2", "-a", address]).finish(20)
    one.finish(10)


if ALL:
    @pytest.mark.parametrize("check", [check_a_synchronous_identifier, check_a_socket_of_streams, check_perftest])
    def test_more_programs(server_and_client, check):
        check(server_and_client)
