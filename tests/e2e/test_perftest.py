"""perftest's ib_send_lat and ib_send_bw, unmodified, over UD: every size, events, inline, many queue pairs, both ways."""

import re

import pytest

PORT = 18515
SIZES = [2**power for power in range(1, 13)]

LATENCY = ["ib_send_lat", "-c", "UD", "-F"]
BANDWIDTH = ["ib_send_bw", "-c", "UD", "-F"]
# UD has no flow control, perftest waits for ever for what was lost, and the socket of an unprivileged user holds some
# fifty datagrams of 4096 bytes: over UDP it must not send faster than a busy machine receives.
PACED = ["--rate_limit=20000", "--rate_units=p", "--rate_limit_type=SW", "--burst_size=16"]


def perftest(server, client, user, address, env, command):
    """A perftest program between two processes. Returns what the client says."""
    words = [*command, "-p", str(PORT)]
    one = server.start([*words, "-x", str(server.gid_index(address[0], user=user, env=env))], user=user, env=env)
    server.wait_listening(PORT, one)
    other = client.start([*words, "-x", str(client.gid_index(address[1], user=user, env=env)), server.v4],
                         user=user, env=env)
    output = other.finish(60)
    one.finish(20)
    return output


def paced(command, path, options=()):
    """The command as it is run over this path. perftest cannot pace itself where it waits for events."""
    if command is not BANDWIDTH or path["VERBENA_SHM"] == "on" or "-e" in options:
        return command
    return [*command, *PACED]


def sizes(output):
    """The message sizes of the result table."""
    return [int(size) for size in re.findall(r"^\s*(\d+)\s+\d+\s+\d+\.\d+", output, re.MULTILINE)]


@pytest.mark.parametrize("command", [LATENCY, BANDWIDTH], ids=["lat", "bw"])
def test_every_size_up_to_the_mtu(host, user, path, command):
    output = perftest(host, host, user, (host.v4, host.v4), path, [*paced(command, path), "-a", "-n", "500"])
    assert sizes(output) == SIZES, output


@pytest.mark.parametrize("options", [["-e"], ["-I", "64"], ["-e", "-s", "1024"], ["-I", "0", "-s", "4096"]], ids=" ".join)
@pytest.mark.parametrize("command", [LATENCY, BANDWIDTH], ids=["lat", "bw"])
def test_events_and_inline(host, user, path, command, options):
    output = perftest(host, host, user, (host.v4, host.v4), path,
                      [*paced(command, path, options), "-n", "1000", *options])
    assert len(sizes(output)) == 1, output


@pytest.mark.parametrize("options", [["-q", "16"], ["-b"], ["-b", "-q", "16"], ["-q", "4", "-e", "-I", "32"]], ids=" ".join)
def test_many_queue_pairs_and_both_directions(host, user, path, options):
    output = perftest(host, host, user, (host.v4, host.v4), path, [*BANDWIDTH, "-s", "64", "-n", "1000", *options])
    assert sizes(output) == [64], output


@pytest.mark.parametrize("family,user", [("ipv4", "root"), ("ipv4", "nobody"), ("ipv6", "nobody")])
@pytest.mark.parametrize("command", [LATENCY, BANDWIDTH], ids=["lat", "bw"])
def test_every_size_between_two_hosts(hosts, user, family, command):
    left, right = hosts
    addresses = (left.v4, right.v4) if family == "ipv4" else (left.v6, right.v6)
    output = perftest(left, right, user, addresses, {}, [*command, "-a", "-n", "300"])
    assert sizes(output) == SIZES, output


@pytest.mark.parametrize("options", [["-e"], ["-I", "64"], ["-q", "16"], ["-b"]], ids=" ".join)
def test_bandwidth_options_between_two_hosts(hosts, options):
    left, right = hosts
    output = perftest(left, right, "nobody", (left.v4, right.v4), {}, [*BANDWIDTH, "-s", "1024", "-n", "500", *options])
    assert sizes(output) == [1024], output


def test_sizes_stop_at_the_mtu_of_ordinary_frames(plain_hosts):
    left, right = plain_hosts
    output = perftest(left, right, "root", (left.v4, right.v4), {}, [*LATENCY, "-a", "-n", "200"])
    assert sizes(output) == [size for size in SIZES if size <= 1024], output
