"""What changes under a directory on the kernel's rxe: told by the kernel's own events and notices, and how soon it is back.

One pair of programs for the whole file. The application asks for each destination until it has a handle, and does
nothing about it from then on. Each test puts back what it changed."""

import contextlib
import time

import pytest

from guest.network import batch
from guest.traffic import RxeTraffic
from harness.network import run
from harness.process import eventually

MORE = ["10.9.2.2", "10.9.2.3"]
MOVES = "10.9.6.2"
NETS = ["10.9.2.0/24", f"{MOVES}/32"]
ADDRESSES = ["10.9.0.2", "fd09::2", *MORE, MOVES]


def lead(kernel):
    """The routes of the pair, and those to the further addresses of the far end."""
    kernel.lead()
    batch([f"route replace {net} dev rxea src 10.9.0.1 table 101" for net in NETS])


@pytest.fixture(scope="module")
def traffic(pair):
    pair.sysctl("net.ipv6.conf.rxea.keep_addr_on_down=1")
    batch([*(f"address add {address}/32 dev rxeb" for address in (*MORE, MOVES)),
           *(f"rule add pref 5 iif lo to {net} lookup 101" for net in NETS)])
    lead(pair)
    try:
        yield RxeTraffic(pair, ADDRESSES)
    finally:
        batch([f"rule delete pref 5 to {net}" for net in NETS])


@pytest.fixture
def told(traffic):
    """Asks what the subscriber was told since the test began: has it been told of this kind, with one of these causes?"""
    before = traffic.events()

    def since(kind, *causes):
        now = traffic.events().get(kind, {})
        return any(count > before.get(kind, {}).get(cause, 0) for cause, count in now.items() if not causes or cause in causes)

    return since


@contextlib.contextmanager
def described(traffic):
    """What the ends know, where the test fails."""
    try:
        yield
    except BaseException:
        print(traffic.stats(), traffic.events(), run(["ip", "address"]), run(["ip", "route", "show", "table", "all"]),
              run(["ip", "neigh"]))
        print("\n".join(traffic.near.lines[-3:] + traffic.far.lines[-3:]))
        raise


def test_all_are_reached(traffic):
    traffic.recovered("the start", 20, traffic.begin)
    assert traffic.counts()["ready"] == len(ADDRESSES)
    assert traffic.events()["ready"]


def test_gids_that_come_back_at_other_indices(pair, traffic, told):
    before = pair.find_gid("rxe0", "10.9.0.1")
    with described(traffic):
        # Its place is taken by another before it comes back.
        batch(["address del 10.9.0.1/24 dev rxea", "address add 10.78.0.1/24 dev rxea", "address add 10.9.0.1/24 dev rxea"])
        lead(pair)
        traffic.recovered("a GID that moved to another index", 20)
        assert pair.find_gid("rxe0", "10.9.0.1") not in (None, before), "it has not moved"
        assert traffic.counts()["ready"] == len(ADDRESSES)
        eventually(lambda: told("ready") or told("replaced"), 10, "the subscriber is told")
        assert told("gone") or told("stale"), traffic.events()
        batch(["address del 10.78.0.1/24 dev rxea"])


@pytest.mark.parametrize("seconds", [0, 1])
def test_a_port_that_goes_down_and_comes_up(pair, traffic, told, seconds):
    with described(traffic):
        run(["ip", "link", "set", "rxea", "down"])
        time.sleep(seconds)
        run(["ip", "link", "set", "rxea", "up"])
        lead(pair)
        traffic.recovered(f"a port that was down for {seconds} s", 30)
        eventually(lambda: told("stale", "port", "link", "route", "gid", "address") or told("gone"), 10, "the subscriber is told")


def test_an_interface_that_is_renamed(pair, traffic):
    with described(traffic):
        run(["ip", "link", "set", "rxea", "down"])
        batch(["link set rxea name data7", "link set data7 up"])
        batch(["link set data7 down", "link set data7 name rxea", "link set rxea up"])
        lead(pair)
        traffic.recovered("two new names", 30)


def test_a_machine_that_migrates(pair, traffic, told):
    with described(traffic):
        batch(["address flush dev rxea", "link set rxea down"])
        eventually(lambda: traffic.counts()["ready"] == 0, 20, "look-ups find nothing while no source is there")
        eventually(lambda: told("gone"), 10, "the subscriber is told that they are gone")
        time.sleep(1)
        batch(["link set rxea address 02:00:00:00:66:01 up", "address add 10.9.0.1/24 dev rxea",
               "address add fd09::1/64 dev rxea nodad"])
        lead(pair)
        traffic.recovered("a migration of a second", 30)
        eventually(lambda: told("ready") or told("replaced"), 10, "the subscriber is told that they are back")
        assert traffic.stats()["asked_in_vain"] == 0, "the application had nothing to do with it"


def test_a_next_hop_with_another_mac_address(traffic, told):
    with described(traffic):
        before = traffic.counts()
        # What it announces is not learned here, where its addresses are this host's own: the table is told.
        mac = "02:00:00:00:44:02"
        run(["ip", "link", "set", "rxeb", "address", mac])
        batch([f"neighbour replace {address} lladdr {mac} nud reachable dev rxea" for address in ADDRESSES])
        moved = time.monotonic_ns()
        traffic.wait_count("stale_neighbour", before["stale_neighbour"])
        traffic.wait_count("replaced", before["replaced"])
        traffic.recovered("a next hop with another MAC address", 30, moved)
        assert told("stale", "neighbour") and told("replaced", "neighbour"), traffic.events()


def test_a_neighbour_that_moves_to_another_interface(pair, traffic, told):
    with described(traffic):
        run(["modprobe", "macvlan"])
        batch(["link add link rxea name mv0 type macvlan mode bridge", "link set mv0 up", "address add 10.9.6.1/32 dev mv0"])
        eventually(lambda: pair.find_gid("rxe0", "10.9.6.1") is not None, 20, "the port has a GID of the other interface")
        before = traffic.counts()
        batch([f"route replace {MOVES}/32 dev mv0 src 10.9.6.1 table 101"])
        moved = time.monotonic_ns()
        traffic.wait_count("replaced", before["replaced"])
        traffic.recovered("a neighbour that moved to another interface", 30, moved)
        eventually(lambda: "::ffff:10.9.6.1" in traffic.sources(), 20, "it is sent to from there")
        assert told("replaced"), traffic.events()
        batch(["link delete mv0"])
        lead(pair)
        traffic.recovered("its return", 30)


def test_nothing_is_left(traffic):
    with described(traffic):
        final = traffic.finish()
    print(f"sends that failed: {final['failed_sends']}; queue pairs that this cost: {final['queue_pairs_replaced']}")
