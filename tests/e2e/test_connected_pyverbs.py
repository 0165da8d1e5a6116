"""pyverbs programs over RC and UC (Debian's python3-pyverbs, unmodified): each operation, byte by byte, and the errors that
the specification names, at both ends."""

import pytest

from harness.connection import (FLUSHED, LOCAL_PROTECTION, REMOTE_ACCESS, REMOTE_INVALID_REQUEST, RETRY_EXCEEDED, RNR_RETRY_EXCEEDED,
                                STATE_ERROR, STATE_RTS, SUCCESS, connect, pair, statuses)

HALF = 1 << 19
SIZES = [0, 1, 255, 4096, 4097, 100001, HALF]
OPCODE_RECEIVE, OPCODE_RECEIVE_WRITE = 128, 129


@pytest.fixture(params=["shm", "udp", "two-hosts"])
def places(request, hosts):
    """Two places, and the settings of the device there."""
    if request.param == "two-hosts":
        return hosts, {}
    return (hosts[0], hosts[0]), {"VERBENA_SHM": "on" if request.param == "shm" else "off"}


def both(places, transport="RC", **options):
    where, env = places
    return pair(*where, transport, user="nobody", env=env, **options)


def test_sends_of_every_size_arrive_whole(places):
    one, other = both(places, psn=0xfffff0, peer_psn=0xabcdef)
    for number, size in enumerate(SIZES):
        other.wipe(0, HALF)
        other.receive(number, 0, HALF, pieces=3)
        one.fill(0, HALF, number)
        assert one.post("send_imm", number, 0, size, imm=0x01020304 + number, pieces=2 if size > 1 else 1) == 0
        assert statuses(one.poll()) == [SUCCESS]
        [[wr_id, status, opcode, length, imm, _]] = other.poll()
        assert (wr_id, status, opcode, length, imm) == (number, SUCCESS, OPCODE_RECEIVE, size, 0x01020304 + number)
        one.wipe(size, HALF - size)
        assert one.digest(0, HALF) == other.digest(0, HALF)


def test_writes_and_reads_of_every_size(places):
    one, other = both(places, peer_psn=0xffffff)
    for number, size in enumerate(SIZES):
        other.wipe(0, 2 * HALF)
        one.fill(0, HALF, number)
        one.post("write", 1, 0, size, other.at(7 if size < HALF else 0), pieces=4 if size > 3 else 1)
        one.post("read", 2, HALF, size, other.at(7 if size < HALF else 0), pieces=4 if size > 3 else 1)
        assert [(done[0], done[1]) for done in one.poll(2)] == [(1, SUCCESS), (2, SUCCESS)]
        assert one.digest(0, size) == one.digest(HALF, size)
        assert other.digest(7 if size < HALF else 0, size) == one.digest(0, size)
    one.post("write_imm", 3, 0, 5000, other.at(0), imm=77)
    other.receive(9, 0, 0)
    assert statuses(one.poll()) == [SUCCESS]
    assert other.poll()[0][:5] == [9, SUCCESS, OPCODE_RECEIVE_WRITE, 5000, 77]


def test_atomics_are_applied_once_and_give_what_was_there(places):
    one, other = both(places)
    before = 0
    for number in range(1, 20):
        one.post("add", number, 0, 8, other.at(64), compare=number)
        assert statuses(one.poll()) == [SUCCESS]
        assert one.number(0) == before
        before += number
    assert other.number(64) == before
    one.post("swap", 1, 0, 8, other.at(64), compare=before, swap=42)
    one.post("swap", 2, 8, 8, other.at(64), compare=before, swap=43)
    assert statuses(one.poll(2)) == [SUCCESS, SUCCESS]
    assert (one.number(0), one.number(8), other.number(64)) == (before, 42, 42)


def test_inline_data_may_change_as_soon_as_it_is_posted(places):
    one, other = both(places)
    for number in range(40):
        other.receive(number, number * 256, 256)
    for number in range(40):
        one.fill(0, 200, number)
        one.post("send", number, 0, 200, flags=("signaled", "inline"))
        one.wipe(0, 200)
    assert statuses(one.poll(40)) == [SUCCESS] * 40
    assert statuses(other.poll(40)) == [SUCCESS] * 40
    assert all(other.is_pattern(number * 256, 200, number) for number in range(40))


def test_a_fence_holds_a_send_back_until_the_read_is_there(places):
    one, other = both(places)
    other.fill(0, HALF, "far")
    other.receive(1, HALF, HALF)
    one.post("read", 1, 0, HALF, other.at(0))
    one.post("send", 2, 0, HALF, flags=("signaled", "fence"))
    assert statuses(one.poll(2)) == [SUCCESS, SUCCESS]
    assert statuses(other.poll()) == [SUCCESS]
    assert other.is_pattern(HALF, HALF, "far")


def test_a_receive_that_comes_late_is_waited_for(places):
    one, other = both(places)
    one.fill(0, 10000, "late")
    one.post("send", 1, 0, 10000)
    assert one.poll(1, 0.3) == [], "there is no receive yet"
    other.receive(5, 0, 10000)
    assert statuses(one.poll()) == [SUCCESS] and statuses(other.poll()) == [SUCCESS]
    assert other.is_pattern(0, 10000, "late")


def test_without_a_receive_the_retries_end(places):
    one, other = both(places, rnr=2)
    one.post("send", 1, 0, 100)
    one.post("send", 2, 0, 100, flags=())
    assert [(done[0], done[1]) for done in one.poll(2)] == [(1, RNR_RETRY_EXCEEDED), (2, FLUSHED)]
    assert one.state() == STATE_ERROR and other.state() == STATE_RTS


@pytest.mark.parametrize("retry,status", [(1, RETRY_EXCEEDED), (7, SUCCESS)])
def test_where_rnr_naks_are_lost_the_timeout_decides(hosts, retry, status):
    one, other = pair(hosts[0], hosts[0], env={"VERBENA_QUIRKS": "rnr_nak_lost"}, rnr=0, timeout=14, retry=retry)
    one.post("send", 1, 0, 100)
    if status == SUCCESS:
        assert one.poll(1, 0.1) == []
        other.receive(1, 0, 100)
    assert statuses(one.poll()) == [status]


# What is refused: the request, the status at the requester, and the state of the responder.
READ_ONLY, WRITE_ONLY = 4, 3


@pytest.mark.parametrize("opcode,access", [("write", READ_ONLY), ("read", WRITE_ONLY), ("add", WRITE_ONLY), ("swap", READ_ONLY)])
def test_memory_without_the_right_is_refused(places, opcode, access):
    one, other = both(places)
    region = other.region(4096, access)
    before = other.region_digest(0)
    one.fill(0, 4096, "bad")
    one.post(opcode, 1, 0, 8, [region["address"], region["rkey"]], compare=1, swap=2)
    assert statuses(one.poll()) == [REMOTE_ACCESS]
    assert one.state() == STATE_ERROR and other.state() == STATE_ERROR
    assert other.region_digest(0) == before


@pytest.mark.parametrize("opcode", ["write", "read"])
@pytest.mark.parametrize("offset,length", [(-1, 8), (4089, 8), (0, 4097), (1 << 40, 8)])
def test_memory_out_of_bounds_is_refused(hosts, opcode, offset, length):
    one, other = pair(*hosts)
    region = other.region(4096, 7)
    before = other.digest(), other.region_digest(0)
    one.fill(0, 8192, "bad")
    one.post(opcode, 1, 0, length, [region["address"] + offset, region["rkey"]])
    assert statuses(one.poll()) == [REMOTE_ACCESS]
    assert (other.digest(), other.region_digest(0)) == before
    assert one.state() == STATE_ERROR and other.state() == STATE_ERROR


def test_a_receive_that_is_too_short_ends_the_connection_at_both_ends(places):
    one, other = both(places)
    other.receive(1, 0, 100)
    other.receive(2, 0, 100)
    one.post("send", 1, 0, 101)
    assert statuses(one.poll()) == [REMOTE_INVALID_REQUEST]
    assert [(done[0], done[1]) for done in other.poll(2)] == [(1, 1), (2, FLUSHED)]


def test_memory_of_nobody_is_a_local_error_and_the_rest_is_flushed(places):
    one, other = both(places)
    region = one.region(4096, 0)
    other.receive(1, 0, 4096)
    one.post("read", 1, 0, 100, other.at(0))
    assert statuses(one.poll()) == [SUCCESS]
    assert region["lkey"] != 0
    one.post("send", 2, (1 << 20) - 10, 100)
    one.post("send", 3, 0, 100)
    assert [(done[0], done[1]) for done in one.poll(2)] == [(2, LOCAL_PROTECTION), (3, FLUSHED)]
    assert other.poll(1, 0.3) == []


def test_unreliable_messages_arrive_whole_or_not_at_all(places):
    one, other = both(places, "UC", peer_psn=0xfffffe)
    for number, size in enumerate([0, 1, 4096, 20000]):
        other.wipe(0, 20000)
        other.receive(number, 0, 20000)
        one.fill(0, 20000, number)
        one.post("send_imm", number, 0, size, imm=number)
        assert statuses(one.poll()) == [SUCCESS]
        assert other.poll()[0][:5] == [number, SUCCESS, OPCODE_RECEIVE, size, number]
        assert other.digest(0, size) == one.digest(0, size)
    one.post("send", 9, 0, 100)  # no receive: lost, and nobody is told
    assert statuses(one.poll()) == [SUCCESS] and other.poll(1, 0.3) == []
    one.post("write", 10, 0, 20000, other.at(50000))
    other.receive(11, 0, 8)
    one.post("write_imm", 11, 0, 8, other.at(0), imm=5)
    assert statuses(one.poll(2)) == [SUCCESS, SUCCESS]
    assert other.poll()[0][:5] == [11, SUCCESS, OPCODE_RECEIVE_WRITE, 8, 5]
    assert other.digest(50000, 20000) == one.digest(0, 20000)
    assert other.state() == STATE_RTS


def test_a_connection_is_made_anew_after_it_failed(places):
    one, other = both(places)
    one.post("read", 1, 0, 8, [other.info["address"], other.info["rkey"] ^ 0x5500])
    assert statuses(one.poll()) == [REMOTE_ACCESS]
    for end in (one, other):
        end.make_qp()
        end.info = end.about()
    connect(one, other, psn=100, peer_psn=200)
    other.fill(0, 30000, "anew")
    one.post("read", 2, 0, 30000, other.at(0))
    assert statuses(one.poll()) == [SUCCESS]
    assert one.is_pattern(0, 30000, "anew")
