"""The address-handle directory over the kernel's rxe, through the real libibverbs: no software RNIC is in these programs."""

import ipaddress

import pytest

from guest.network import batch
from guest.session import Session, exchange
from harness.network import run
from harness.process import eventually

FAMILIES = {"ipv4": ("10.9.0.1", "10.9.0.2"), "ipv6": ("fd09::1", "fd09::2")}


def gid(address):
    return f"::ffff:{address}" if "." in address else str(ipaddress.ip_address(address))


@pytest.fixture
def ends(kernel):
    return Session(kernel, "rxe0"), Session(kernel, "rxe1")


@pytest.mark.parametrize("family", FAMILIES)
def test_datagrams_and_replies_between_two_devices(kernel, ends, family):
    near, far = FAMILIES[family]
    one, other = ends
    chosen = one.must("acquire", far, 5000)
    assert (chosen["source"], chosen["destination"], chosen["type"]) == (gid(near), gid(far), "RoCE v2"), chosen
    assert chosen["sgid_index"] == chosen["index"] == kernel.gid_index(near), chosen
    assert chosen["is_global"] == 1 and chosen["hop_limit"] == 64 and chosen["port"] == 1, chosen
    for number in range(20):
        request, answer = exchange(one, other, far, f"text{number}")
        assert (request["from"], request["to"]) == (gid(near), gid(far)), request
        assert (answer["from"], answer["to"]) == (gid(far), gid(near)), answer
    asked, answered = one.must("stats"), other.must("stats")
    assert asked["created"] == answered["created"] == 1 and asked["live"] == 1, (asked, answered)
    assert asked["hits"] >= 20 and answered["hits"] >= 19 and asked["in_flight"] == 0, (asked, answered)
    for end in ends:
        end.close()


def test_a_dropped_handle_leaves_nothing_and_its_domain_is_given_back(ends):
    one, other = ends
    one.must("acquire", "10.9.0.2", 5000)
    assert one.must("stats")["handles"] == 1
    one.must("drop", "10.9.0.2")
    assert one.must("stats")["handles"] == 0
    assert not one.ask("drop", "10.9.0.2")["ok"], "it was dropped already"
    one.close()
    other.close()


@pytest.mark.parametrize("family,nobody", [("ipv4", "10.9.0.77"), ("ipv6", "fd09::77")])
def test_a_peer_that_is_not_there_is_a_typed_error_in_bounded_time_and_then_at_once(ends, family, nobody):
    one, other = ends
    first = one.ask("acquire", nobody, 8000)
    assert not first["ok"] and first["code"] in ("unreachable", "timed_out"), first
    assert first["ms"] < 8500, first
    assert nobody in first["message"], first
    again = one.ask("acquire", nobody, 8000)
    assert not again["ok"] and again["code"] == first["code"], (first, again)
    assert one.must("stats")["negative_hits"] >= 1, "it was answered at once, from what is remembered"
    # The living are not kept waiting by the dead.
    exchange_after(one, other, FAMILIES[family][1])
    one.close()
    other.close()


def exchange_after(one, other, address):
    one.must("acquire", address, 5000)
    return exchange(one, other, address, "alive")


def test_a_deadline_ends_the_wait_before_the_kernel_gives_up(ends):
    one, other = ends
    answer = one.ask("acquire", "10.9.0.78", 100)
    assert not answer["ok"] and answer["code"] == "timed_out", answer
    one.close()
    other.close()


def test_128_threads_that_ask_for_the_same_1000_destinations_make_1000_handles(ends):
    one, other = ends
    storm = one.must("storm", "10.9.0.2", 128, 1000, seconds=60)
    stats = one.must("stats")
    assert storm["refused"] == 0 and stats["created"] == stats["ready"] == stats["live"] == 1000, (storm, stats)
    assert stats["failed"] == stats["handles"] == 0, stats
    one.close()
    other.close()


def test_a_gid_that_moves_to_another_index_is_followed(kernel, ends):
    one, other = ends
    before = exchange_chosen(one, other)
    # Its place is taken before it comes back, by an address that cannot stand in for it.
    batch(["address del 10.9.0.1/24 dev rxea", "address add fd09:7::1/64 dev rxea nodad", "address add 10.9.0.1/24 dev rxea",
           "route replace 10.9.0.2 dev rxea src 10.9.0.1 table 101"])
    eventually(lambda: kernel.find_gid("rxe0", "10.9.0.1") not in (None, before["index"]), 10, "the GID has another index")

    def followed():
        answer = one.ask("effective", "10.9.0.2")
        return answer["ok"] and answer["index"] == kernel.find_gid("rxe0", "10.9.0.1") and answer
    after = eventually(followed, 10, "the directory follows")
    assert after["source"] == before["source"] and after["generation"] > before["generation"], (before, after)
    exchange(one, other, "10.9.0.2", "moved")
    kernel.ip("address", "delete", "fd09:7::1/64", "dev", "rxea")
    for end in ends:
        end.close()


def exchange_chosen(one, other):
    chosen = one.must("acquire", "10.9.0.2", 5000)
    exchange(one, other, "10.9.0.2", "before")
    return chosen


def test_an_address_that_is_added_becomes_a_source_and_one_that_goes_is_one_no_more(kernel, ends):
    one, other = ends
    exchange_chosen(one, other)
    kernel.ip("address", "add", "10.9.5.1/24", "dev", "rxea")
    kernel.ip("address", "add", "10.9.5.2/24", "dev", "rxeb")
    batch(["route replace 10.9.5.2 dev rxea src 10.9.5.1 table 101", "rule add pref 5 iif lo to 10.9.5.2 lookup 101",
           "route replace 10.9.5.1 dev rxeb src 10.9.5.2 table 102", "rule add pref 5 iif lo to 10.9.5.1 lookup 102"])
    try:
        eventually(lambda: kernel.find_gid("rxe0", "10.9.5.1"), 10, "the new GID is there")
        chosen = one.must("acquire", "10.9.5.2", 5000)
        assert chosen["source"] == "::ffff:10.9.5.1", chosen
        exchange(one, other, "10.9.5.2", "added")
        kernel.ip("address", "delete", "10.9.5.1/24", "dev", "rxea")
        eventually(lambda: kernel.find_gid("rxe0", "10.9.5.1") is None, 10, "the GID is gone")

        def given_up():
            answer = one.ask("effective", "10.9.5.2")
            return not answer["ok"] or answer["source"] != "::ffff:10.9.5.1"
        eventually(given_up, 10, "the source that went is no longer used")
        exchange(one, other, "10.9.0.2", "still")
    finally:
        kernel.ip("address", "delete", "10.9.5.2/24", "dev", "rxeb")
        batch(["rule delete to 10.9.5.2 pref 5", "rule delete to 10.9.5.1 pref 5"])
    for end in ends:
        end.close()


def test_a_peer_that_gets_another_mac_address_is_followed(kernel, ends):
    # The kernel's rxe looks the MAC address up for each packet: an old handle would still work there, so it is the
    # handle that is looked at.
    one, other = ends
    before = exchange_chosen(one, other)
    run(["ip", "link", "set", "rxeb", "address", "02:00:00:00:77:01"])
    eventually(lambda: kernel.find_gid("rxe1", "10.9.0.2") is not None, 10, "the peer has its GID again")
    run(["ip", "neighbour", "replace", "10.9.0.2", "lladdr", "02:00:00:00:77:01", "nud", "reachable", "dev", "rxea"])
    eventually(lambda: one.must("effective", "10.9.0.2")["generation"] > before["generation"], 10, "a new handle is made")
    exchange(one, other, "10.9.0.2", "moved")
    for end in ends:
        end.close()


def hear(one, other, incarnation):
    """The other end tells its incarnation with a datagram; what the table of peers says of it."""
    other.must("acquire", "10.9.0.1", 5000)
    other.must("send", "10.9.0.1", one.qpn, f"incarnation-{incarnation}")
    said = one.must("receive", 5000)
    assert said["text"] == f"incarnation-{incarnation}", said
    return said, one.must("standing", said["from"], said["qpn"], incarnation)["standing"]


def test_a_restarted_peer_with_the_same_queue_pair_number_is_another_peer(kernel):
    # A device counts its queue pairs from the beginning when its machine starts: both times the same number.
    kernel.restart_device("rxe1", "rxeb", FAMILIES["ipv4"][1], FAMILIES["ipv6"][1])
    one, first = Session(kernel, "rxe0"), Session(kernel, "rxe1")
    said, standing = hear(one, first, 7)
    assert standing == "unknown", standing
    known = one.must("introduce", said["from"], said["qpn"], 7)
    first.process.kill()
    first.process.finish(20, status=None)
    kernel.restart_device("rxe1", "rxeb", FAMILIES["ipv4"][1], FAMILIES["ipv6"][1])
    second = Session(kernel, "rxe1")
    heard, standing = hear(one, second, 8)
    assert (heard["from"], heard["qpn"]) == (said["from"], said["qpn"]), "the new one has the number of the old one"
    assert standing == "newer", standing
    anew = one.must("introduce", heard["from"], heard["qpn"], 8)
    assert anew["id"] != known["id"] and anew["peers"] == anew["quarantined"] == 1, (known, anew)
    assert one.must("standing", said["from"], said["qpn"], 7)["standing"] == "quarantined", "a late word of the old one"
    assert not one.ask("introduce", said["from"], said["qpn"], 7)["ok"], "and it is not taken up again"
    one.must("acquire", "10.9.0.2", 5000)
    exchange(one, second, "10.9.0.2", "anew")
    for end in (one, second):
        end.close()
