"""Bandwidth of RC beside the kernel's rxe: ib_write_bw and ib_read_bw over a wire of the same kind, and on one host. Ratios only:
the processor may be emulated, and the clocks that perftest compares may then disagree (0.0). Rounds take turns, so that what
else the machine does meets both. `make vm-bench` runs it."""

import json
import pathlib
import re
import statistics

import pytest

from guest import network
from harness.network import join

PORT = 18515
ROUNDS = 3
ITERATIONS = 1000
SIZE = 65536


@pytest.fixture(scope="module")
def two_hosts(build):
    hosts = [network.Host(build, 3), network.Host(build, 4)]
    join(*hosts)
    yield hosts
    for host in hosts:
        host.remove()


def bandwidth(server, client, program, devices, indices, address):
    """MiB a second, as the client's table says."""
    words = [program, "-F", "-s", SIZE, "-n", ITERATIONS, "-p", PORT]
    one = server.start([*words, "-d", devices[0], "-x", indices[0]])
    server.wait_listening(PORT, one)
    other = client.start([*words, "-d", devices[1], "-x", indices[1], address])
    output = other.finish(60)
    one.finish(20)
    return float(re.search(rf"^\s*{SIZE}\s+{ITERATIONS}\s+\S+\s+(\d+\.\d+)", output, re.MULTILINE)[1])


def of_rxe(kernel, program):
    (near, far) = (network.PAIR["rxea"][0], network.PAIR["rxeb"][0])
    return bandwidth(kernel, kernel, program, ("rxe1", "rxe0"), (kernel.gid_index(far, "rxe1"), kernel.gid_index(near, "rxe0")),
                     "127.0.0.1")


def of_verbena(server, client, program):
    return bandwidth(server, client, program, ("verbena0", "verbena0"),
                     (server.gid_index(server.v4), client.gid_index(client.v4)), server.v4)


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw"])
def test_bandwidth_of_a_connection_beside_rxe(kernel, two_hosts, program):
    left, right = two_hosts
    rounds = [(of_rxe(kernel, program), of_verbena(left, right, program), of_verbena(left, left, program))
              for _ in range(ROUNDS)]
    rxe, wire, shared = (statistics.median(column) for column in zip(*rounds))
    report = {"program": program, "rxe_over_wire": rxe, "verbena_over_wire": wire, "verbena_on_one_host": shared,
              "wire_ratio": wire / rxe, "one_host_ratio": shared / rxe}
    pathlib.Path(f"/run/vm/{program}.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))
    assert rxe > 0 and wire > 0, report
