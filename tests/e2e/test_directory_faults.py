"""Faults of the device and of the network under traffic through a directory: it comes back by itself, and how soon.

The application asks for each destination until it has a handle, and does nothing about it from then on."""

import time

import pytest

from harness.directory import Traffic
from harness.network import join
from harness.process import eventually

NO_EVENTS = {"VERBENA_INJECT": "events.lose=100%"}


@pytest.fixture(params=["events", "events lost"])
def events(request):
    """Whether the device's asynchronous events reach the program."""
    return NO_EVENTS if request.param == "events lost" else {}


def peers(host):
    """The addresses of a host: two families, eight in all."""
    more = [f"10.77.0.{byte}" for byte in range(20, 26)]
    for address in more:
        host.ip("address", "add", f"{address}/24", "dev", "veth0")
    return [host.v4, host.v6, *more]


def addresses(host):
    """What a host has, as words of `ip address add`, in their order."""
    lines = host.ip("-o", "address", "show", "dev", "veth0", "scope", "global").splitlines()
    return [line.split()[3] for line in lines]


def give(host, *them):
    for address in them:
        host.ip("address", "add", address, "dev", "veth0", *(["nodad"] if ":" in address else []))


def take(host, *them):
    for address in them:
        host.ip("address", "delete", address, "dev", "veth0")


@pytest.fixture
def user(one_user):
    return one_user


def index_of(host, address, user):
    return host.gid_index(address, user=user)


@pytest.mark.parametrize("delay", ["1us", "50ms", "1us..3s"])
def test_slow_creations_delay_the_first_datagram_and_no_other(hosts, user, delay):
    left, right = hosts
    traffic = Traffic(left, right, user, peers(right), {"VERBENA_INJECT": f"create_ah.delay={delay},seed=5"}, 30)
    print(f"all eight destinations reached after {traffic.wait_flow(traffic.begin, 30):.1f} ms")
    before = traffic.counts()
    # All are made anew; what there was serves meanwhile, however long that takes.
    left.ip("link", "set", "veth0", "address", "02:00:00:00:33:01")
    moved = time.monotonic_ns()
    traffic.recovered(f"a change under slow creations ({delay})", 10, moved)
    traffic.wait_count("replaced", before["replaced"] + traffic.count - 1, 40)
    assert traffic.stats()["unready"] == 0, "the data path never waited"
    traffic.end()


@pytest.mark.parametrize("times", [24, 100])
@pytest.mark.parametrize("when", ["first", "later"])
def test_creations_that_fail_for_want_of_memory_are_made_up_for(hosts, user, when, times):
    left, right = hosts
    after = 0 if when == "first" else 64
    inject = f"create_ah.fail=ENOMEM,create_ah.after={after},create_ah.times={times}"
    traffic = Traffic(left, right, user, peers(right), {"VERBENA_INJECT": inject}, 60)
    print(f"all eight destinations reached after {traffic.wait_flow(traffic.begin):.1f} ms")
    if when == "later":
        # Made anew until the device begins to refuse; the last time in vain for a while.
        for turn in range(12):
            created = traffic.counts()["created"]
            left.ip("link", "set", "veth0", "address", f"02:00:00:00:77:{turn:02x}")
            if traffic.counts()["created"] < 64:
                eventually(lambda: traffic.counts()["created"] >= min(created + 8, 64), 20, "all are made anew")
        assert traffic.counts()["created"] >= 64, "the device never refused"
        # A device that is full has no room for a replacement: the stale one gives its own.
        traffic.recovered(f"{times} refusals for want of memory", 60)
    counts = traffic.counts()
    print(f"creations that ended in an error: {counts['failed']}, answers that it is full: {counts['refused']}")
    traffic.wait_count("created", 64 if when == "later" else traffic.count - 1, 60)
    eventually(lambda: traffic.counts()["ready"] == traffic.count, 60, "all are ready")
    traffic.end()


def test_gids_that_come_back_at_other_indices_are_followed(hosts, user, events):
    left, right = hosts
    traffic = Traffic(left, right, user, peers(right), events)
    before = {address: index_of(left, address, user) for address in (left.v4, left.v6)}
    for turn in range(3):
        old = [f"{left.v4}/24", f"{left.v6}/64"]
        take(left, *old)
        # Their places are taken by others, of which every second goes again and leaves a hole.
        others = [f"10.{78 + turn}.{byte}.1/24" for byte in range(6)]
        give(left, *others)
        take(left, *others[::2])
        give(left, *old)
        traffic.recovered("a table in another order", 20)
    after = {address: index_of(left, address, user) for address in (left.v4, left.v6)}
    assert before != after, "nothing moved"
    assert traffic.counts()["live"] >= traffic.count
    traffic.end()


def quiet_counts(traffic):
    """The counts when nothing is put in doubt any more: the same in several looks, one after the other."""
    seen = []

    def quiet():
        counts = traffic.counts()
        seen.append((counts["stale"], counts["replaced"], counts["pending"], counts["refreshing"]))
        return counts if len(seen) >= 10 and len(set(seen[-10:])) == 1 else None

    return eventually(quiet, 30, "the counts are quiet")


def test_a_source_that_went_is_not_sent_from(hosts, user, events):
    left, right = hosts
    give(left, "10.77.0.40/32")
    left.ip("route", "replace", "10.77.0.2/32", "dev", "veth0", "src", "10.77.0.40")
    traffic = Traffic(left, right, user, [right.v4], events)
    gid = "::ffff:10.77.0.40"
    eventually(lambda: gid in traffic.sources(), 10, "the route's source is used")
    before = traffic.counts()
    take(left, "10.77.0.40/32")
    gone = time.monotonic_ns()
    traffic.wait_count("stale", before["stale"], 20)
    known = time.monotonic_ns()
    traffic.recovered("a source that went", 20, known)
    stale = (traffic.sources()[gid] - gone) / 1e6
    print(f"last datagram from the source that went: sent {stale:.1f} ms after it had gone")
    assert traffic.sources()[gid] <= known, "sent by it when the directory knew that it had gone"
    traffic.end()


def test_a_port_that_flaps_is_waited_for(hosts, user, events):
    left, right = hosts
    left.sysctl("net.ipv6.conf.veth0.keep_addr_on_down=1")
    traffic = Traffic(left, right, user, peers(right), events)
    for seconds in (0, 0.2, 2):
        left.ip("link", "set", "veth0", "down")
        time.sleep(seconds)
        left.ip("link", "set", "veth0", "up")
        traffic.recovered(f"a flap of {seconds} s", 20)
    traffic.end()


def test_a_peer_whose_mac_address_moves_gets_new_handles_and_nobody_else_does(hosts, user, events):
    left, right = hosts
    right.sysctl("net.ipv4.conf.all.arp_notify=1", "net.ipv4.conf.veth0.arp_notify=1",
                 "net.ipv6.conf.veth0.ndisc_notify=1")
    traffic = Traffic(left, right, user, peers(right), events)
    before = traffic.counts()
    right.ip("link", "set", "veth0", "address", "02:00:00:00:44:02")
    moved = time.monotonic_ns()
    after = traffic.wait_count("stale_neighbour", before["stale_neighbour"], 20)
    traffic.wait_count("replaced", before["replaced"], 20)
    print(f"handles in doubt by the new MAC address: {after['stale_neighbour'] - before['stale_neighbour']}")
    traffic.recovered("a MAC address that moved", 30, moved)
    # One neighbour alone: no other handle is touched.
    eventually(lambda: traffic.counts()["pending"] == 0, 20, "all is made anew")
    before = quiet_counts(traffic)
    left.ip("neighbour", "replace", "10.77.0.20", "lladdr", "02:00:00:00:55:20", "nud", "reachable", "dev", "veth0")
    after = traffic.wait_count("stale_neighbour", before["stale_neighbour"], 20)
    assert after["stale_neighbour"] == before["stale_neighbour"] + 1, (before, after)
    left.ip("neighbour", "replace", "10.77.0.20", "lladdr", "02:00:00:00:44:02", "nud", "reachable", "dev", "veth0")
    traffic.recovered("one neighbour that moved and came back", 30)
    traffic.end()


def test_a_machine_that_migrates_loses_all_addresses_and_goes_on(hosts, user, events):
    left, right = hosts
    traffic = Traffic(left, right, user, peers(right), events)
    old = addresses(left)
    left.ip("address", "flush", "dev", "veth0")
    left.ip("link", "set", "veth0", "down")
    eventually(lambda: traffic.counts()["ready"] == 0, 20, "look-ups find nothing while no source is there")
    time.sleep(2)
    left.ip("link", "set", "veth0", "address", "02:00:00:00:66:01", "up")
    give(left, *old)
    traffic.recovered("a migration of two seconds", 30)
    assert traffic.stats()["asked_in_vain"] == 0
    traffic.end()


def test_an_interface_that_is_renamed_is_the_same_interface(hosts, user, events):
    left, right = hosts
    left.sysctl("net.ipv6.conf.veth0.keep_addr_on_down=1")
    traffic = Traffic(left, right, user, peers(right), events)
    left.ip("link", "set", "veth0", "down")
    left.ip("link", "set", "veth0", "name", "data7")
    left.ip("link", "set", "data7", "up")
    traffic.recovered("a new name", 20)
    traffic.end()


def test_an_interface_that_is_made_anew_is_followed(hosts, user, events):
    left, right = hosts
    traffic = Traffic(left, right, user, peers(right), events)
    others = [address for address in addresses(right) if address.split("/")[0] not in (right.v4, right.v6)]
    left.ip("link", "delete", "veth0")  # and with it the other end
    eventually(lambda: traffic.counts()["ready"] == 0, 20, "look-ups find nothing while no source is there")
    join(left, right)
    give(right, *others)
    traffic.recovered("an interface that was made anew", 30)
    assert traffic.stats()["asked_in_vain"] == 0
    traffic.end()


@pytest.mark.parametrize("kind", ["blackhole", "unreachable", "prohibit"])
def test_a_route_that_forbids_is_told_and_its_end_is_followed(hosts, user, kind):
    left, right = hosts
    traffic = Traffic(left, right, user, [right.v4, right.v6])

    def told(what):
        return sum(traffic.events().get(what, {}).values()) >= 2

    for destination in (right.v4, right.v6):
        left.ip("route", "add", kind, destination)
    eventually(lambda: told("failed"), 20, "both destinations are told to have failed")
    for destination in (right.v4, right.v6):
        left.ip("route", "delete", kind, destination)
    traffic.recovered(f"a route of type {kind}", 30)
    eventually(lambda: told("recovered"), 20, "both destinations are told to have recovered")
    traffic.end()
