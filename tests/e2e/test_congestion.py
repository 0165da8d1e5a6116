"""Connections where the network is congested: marks are answered with CNPs, CNPs slow the sender down, and it recovers."""

import json
import time

import pytest

from harness.connection import SUCCESS, pair, statuses

SIZE = 1 << 19


def counts(hosts):
    total = {}
    for host in dict.fromkeys(hosts):
        for process in json.loads(host.verbena("drops", "--all", "--json"))["processes"]:
            for device in process["devices"]:
                for name, count in device["counters"].items():
                    total[name] = total.get(name, 0) + count
    return total


def write(one, other, times):
    """Seconds for so many writes."""
    begin = time.monotonic()
    for number in range(times):
        one.post("write", number, 0, SIZE, other.at(0))
        assert statuses(one.poll(1, 30)) == [SUCCESS]
    return time.monotonic() - begin


@pytest.fixture(params=["shm", "udp", "two-hosts"])
def places(request, hosts):
    where = hosts if request.param == "two-hosts" else (hosts[0], hosts[0])
    return where, {"VERBENA_SHM": "off" if request.param == "udp" else "on"}


def test_marks_slow_a_sender_down(places):
    where, env = places
    one, other = pair(*where, env=env, envs=({"VERBENA_IMPAIR": "mark=20%,seed=3"}, {}), timeout=14, retry=7, mtu=3)
    one.fill(0, SIZE, "congested")
    slow = write(one, other, 10)
    assert other.digest(0, SIZE) == one.digest(0, SIZE)
    seen = counts(where)
    print(slow, {name: count for name, count in seen.items() if count})
    assert seen["np_ecn_marked_roce_packets"] > 100, seen
    assert 0 < seen["np_cnp_sent"] <= slow * 1e9 / 50_000 + 1, "one in 50 us at most"
    assert 0 < seen["rp_cnp_handled"] <= seen["np_cnp_sent"], seen
    assert seen["retries_exceeded"] == 0, seen
    # A process that had no processor for 67 ms is one; were the pace too slow for the timeout, each write would meet some.
    assert seen["ack_timeouts"] < 5, seen


def test_a_reader_is_heeded_too(places):
    where, env = places
    one, other = pair(*where, env=env, envs=({}, {"VERBENA_IMPAIR": "mark=20%,seed=3"}), timeout=14, retry=7, mtu=3)
    other.fill(0, SIZE, "far")
    for number in range(5):
        one.post("read", number, 0, SIZE, other.at(0))
        assert statuses(one.poll(1, 30)) == [SUCCESS]
    assert one.is_pattern(0, SIZE, "far")
    seen = counts(where)
    assert seen["np_cnp_sent"] > 0 and seen["rp_cnp_handled"] > 0, seen


def test_switched_off_there_is_nothing_to_mark(places):
    where, env = places
    off = {**env, "VERBENA_CONGESTION": "off"}
    one, other = pair(*where, env=off, envs=({"VERBENA_IMPAIR": "mark=100%,seed=3"}, {}), timeout=14, retry=7, mtu=3)
    one.fill(0, SIZE, "free")
    write(one, other, 3)
    assert other.digest(0, SIZE) == one.digest(0, SIZE)
    seen = counts(where)
    assert seen["np_ecn_marked_roce_packets"] == seen["np_cnp_sent"] == seen["rp_cnp_handled"] == 0, seen
