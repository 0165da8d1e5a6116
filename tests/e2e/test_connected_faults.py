"""Connections over a bad network: seeded loss, duplicates, reordering and damage in both directions. Every byte is right, every
request completes once, atomics are applied once, and what was sent again is counted."""

import json

import pytest

from harness.connection import SUCCESS, pair, statuses

HALF = 1 << 19
ROUNDS = 12
FAULTS = {"loss": "loss=3%", "duplicates": "dup=10%", "reordering": "reorder=5%", "damage": "corrupt=2%",
          "all": "loss=1%,dup=3%,reorder=3%,corrupt=1%", "delay": "delay=200us,jitter=100us,reorder=2%"}


def counts(hosts):
    """Counters and drops of all processes of these hosts."""
    total = {}
    for host in dict.fromkeys(hosts):
        for process in json.loads(host.verbena("drops", "--all", "--json"))["processes"]:
            for device in process["devices"]:
                for name, count in {**device["counters"], **device.get("drops", {})}.items():
                    total[name] = total.get(name, 0) + count
    return total


@pytest.fixture(params=["shm", "udp", "two-hosts"])
def places(request, hosts):
    where = hosts if request.param == "two-hosts" else (hosts[0], hosts[0])
    return where, {"VERBENA_SHM": "off" if request.param == "udp" else "on"}


@pytest.mark.parametrize("fault", FAULTS)
def test_everything_arrives_once_and_whole(places, fault):
    where, env = places
    envs = [{"VERBENA_IMPAIR": f"{FAULTS[fault]},seed={seed}"} for seed in (11, 12)]
    one, other = pair(*where, env=env, envs=envs, psn=0xfffff0, peer_psn=0x7fffff, timeout=12, retry=7, mtu=3)
    added = 0
    for number in range(ROUNDS):
        size = (number * 48611 + 1) % HALF
        one.fill(0, HALF, f"near {number}")
        other.wipe(0, HALF)
        other.fill(HALF, HALF - 8, f"far {number}")
        other.receive(number, 0, HALF)
        one.post("send_imm", 1, 0, size, imm=number)
        one.post("read", 2, HALF, size, other.at(HALF))
        for _ in range(3):
            one.post("add", 3, 0 if size < 8 else HALF - 8, 8, other.at(2 * HALF - 8), compare=number + 1)
            added += number + 1
        assert [(done[0], done[1]) for done in one.poll(5, 30)] == [(1, SUCCESS), (2, SUCCESS), *[(3, SUCCESS)] * 3]
        assert other.poll()[0][:5] == [number, SUCCESS, 128, size, number]
        assert other.digest(0, size) == one.digest(0, size) or size < 8
        assert one.is_pattern(HALF, size, f"far {number}")
        assert other.number(2 * HALF - 8) == added
        other.wipe(0, HALF)
        one.post("write", 4, 0, size, other.at(0))
        assert statuses(one.poll(1, 30)) == [SUCCESS]
        assert other.digest(0, size) == one.digest(0, size)
    assert other.poll(1, 0.1) == [] and one.poll(1, 0) == []
    seen = counts(where)
    print(fault, {name: count for name, count in seen.items() if count})
    if fault == "loss":
        assert seen["impair_loss"] > 0 and seen["retransmissions"] > 0, seen
    if fault == "duplicates":
        assert seen["duplicate_requests"] + seen["duplicate_request"] > 0, seen
    if fault == "damage":
        assert seen["retransmissions"] > 0, seen
        assert seen["icrc_mismatch"] > 0 or where[0] is where[1], seen
    assert seen["retries_exceeded"] == 0 and seen["queue_pairs"] == 2, seen


def test_a_network_that_loses_all_is_told_of(hosts):
    one, _ = pair(*hosts, envs=({"VERBENA_IMPAIR": "loss=100%,seed=1"}, {}), timeout=10, retry=3)
    one.post("send", 1, 0, 100)
    assert statuses(one.poll()) == [12]
    seen = counts(hosts)
    assert seen["retries_exceeded"] == 1 and seen["ack_timeouts"] == 4 and seen["impair_loss"] >= 4, seen


def sent_again(hosts, ends, again):
    """How many packets two ends send a second time over a network that loses one in a hundred. Takes the connection down."""
    envs = [{"VERBENA_IMPAIR": f"loss=1%,seed={seed}", **env} for seed, env in zip((21, 22), ends)]
    one, other = pair(*hosts, envs=envs, psn=0xfffff0, peer_psn=0x7fffff, timeout=14, retry=7, mtu=3)
    for number in range(again):
        one.fill(0, HALF, f"near {number}")
        other.fill(HALF, HALF, f"far {number}")
        one.post("write", 1, 0, HALF, other.at(0))
        one.post("read", 2, HALF, HALF, other.at(HALF))
        assert statuses(one.poll(2, 60)) == [SUCCESS] * 2
        assert other.digest(0, HALF) == one.digest(0, HALF) and one.is_pattern(HALF, HALF, f"far {number}")
    seen = counts(hosts)
    print(ends, {name: count for name, count in seen.items() if count})
    assert seen["impair_loss"] > 0 and seen["retries_exceeded"] == 0, seen
    one.end()
    other.end()
    return seen


def test_only_what_was_lost_is_sent_again(hosts):
    off = {"VERBENA_SELECTIVE_REPEAT": "off"}
    selective, half, none = (sent_again(hosts, ends, 8) for ends in (({}, {}), ({}, off), (off, off)))
    assert selective["selective_acks_received"] > 0 and selective["early_requests_kept"] > 0, selective
    assert selective["packets_sent_again"] * 3 < none["packets_sent_again"], (selective, none)
    for seen in (half, none):
        assert seen["selective_acks_sent"] == seen["early_requests_kept"] == 0, seen
