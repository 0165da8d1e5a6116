"""Verbena's RNIC and the kernel's rxe on one wire, in both directions, with unmodified programs on both ends."""

import json
import re

import pytest

from guest.network import device_of

PORT = 18515


def start(host, command, address, *more):
    return host.start([*command, "-d", device_of(host), *more, str(host.gid_index(address))])


@pytest.fixture(params=["to-the-kernel", "to-verbena"])
def server_and_client(request, kernel_and_host):
    kernel, host = kernel_and_host
    return (kernel, host) if request.param == "to-the-kernel" else (host, kernel)


@pytest.fixture(params=["ipv4", "ipv6"])
def family(request):
    return "v4" if request.param == "ipv4" else "v6"


def test_ibv_ud_pingpong(server_and_client, family):
    server, client = server_and_client
    words = ["-n", "200", "-s", "1000", "-e", "-c", "-p", str(PORT), "-g"]
    one = start(server, ["ibv_ud_pingpong"], getattr(server, family), *words)
    server.wait_listening(PORT, one)
    other = client.start(["ibv_ud_pingpong", "-d", device_of(client), *words,
                          str(client.gid_index(getattr(client, family))), server.v4])
    for process in (other, one):
        assert re.search(r"^200 iters in .* seconds", process.finish(40), re.MULTILINE), process.describe()


# UD has no flow control, and perftest waits for ever for what was lost: it must not send faster than an emulated
# processor receives. Both ends sleep for events, since two that poll leave no processor to the kernel.
# Three bytes are padded to four on the wire.
PROGRAMS = {"ib_send_lat": ["ib_send_lat", "-e", "-s", "3", "-n", "100"],
            "ib_send_bw": ["ib_send_bw", "-s", "1024", "-n", "200", "--rate_limit=400", "--rate_units=p",
                           "--rate_limit_type=SW", "--burst_size=8"]}


@pytest.mark.parametrize("program,family", [("ib_send_lat", "v4"), ("ib_send_bw", "v6")])
def test_perftest(server_and_client, program, family):
    server, client = server_and_client
    words = [*PROGRAMS[program], "-c", "UD", "-F", "-p", str(PORT)]
    one = start(server, words, getattr(server, family), "-x")
    server.wait_listening(PORT, one)
    other = client.start([*words, "-d", device_of(client), "-x", str(client.gid_index(getattr(client, family))), server.v4])
    output = other.finish(60)
    one.finish(20)
    # Under emulation the clocks that perftest compares may disagree: it then writes "inf" for a time.
    sizes = [int(size) for size in re.findall(r"^\s*(\d+)\s+\d+\s+(?:\d+\.\d+|inf)", output, re.MULTILINE)]
    assert sizes == [int(words[words.index("-s") + 1])], output


def test_the_tool_pings_the_other_kind(server_and_client, family):
    server, client = server_and_client
    listener = server.start([], tool=("ping", "--listen", "--once", "--device", device_of(server)))
    server.wait_listening(18519, listener)
    report = json.loads(client.verbena("ping", getattr(server, family), "--device", device_of(client), "--json", "-c", "150",
                                       "-s", "4096", "--timeout", "5000", seconds=60))
    listener.finish(20)
    assert report["received"] == report["sent"] == 150 and report["corrupt"] == 0, report
    assert report["device"] == device_of(client), report
