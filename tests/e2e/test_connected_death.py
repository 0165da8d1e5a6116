"""One end of a connection is killed in the middle of each operation: the other learns it as the specification says, in the time
that its retry settings imply, and nothing hangs or is left behind."""

import time

import pytest

from harness.connection import FLUSHED, RETRY_EXCEEDED, STATE_ERROR, End, connect, pair, statuses
from harness.process import PATIENCE

# Local ACK timeout 4.096 us * 2^15 = 134 ms, three retries: an answer is waited for four times.
TIMEOUT, RETRIES = 15, 3
LEAST = 4.096e-6 * 2**TIMEOUT * (RETRIES + 1)
# The specification lets a device take up to four times the timeout.
MOST = 4 * LEAST
LENGTH = 200000
LENGTHS = {"write": LENGTH, "read": LENGTH, "add": 8, "swap": 8}


@pytest.fixture(params=["shm", "udp", "two-hosts"])
def ends(request, hosts):
    env = {"VERBENA_SHM": "off" if request.param == "udp" else "on"}
    places = hosts if request.param == "two-hosts" else (hosts[0], hosts[0])
    return pair(*places, user="nobody", env=env, timeout=TIMEOUT, retry=RETRIES)


def start_stream(one, other, operation):
    """`one` keeps requests under way. Returns when they are."""
    one.say("stream", operation, 0, LENGTHS[operation], other.at(LENGTH), 60)
    one.process.wait_line("progress", 30)


@pytest.mark.parametrize("operation", ["write", "read", "add", "swap"])
def test_the_responder_is_killed(ends, operation):
    one, other = ends
    start_stream(one, other, operation)
    begin = time.monotonic()
    other.process.kill()
    failed = one.answer(60)
    took = time.monotonic() - begin
    print(f"{operation}: told after {took * 1000:.0f} ms; the timeouts come to {LEAST * 1000:.0f} ms")
    assert statuses(failed) == [RETRY_EXCEEDED] + [FLUSHED] * (len(failed) - 1), failed
    assert len(failed) > 1, "what was behind it is flushed"
    assert 0.5 * LEAST < took < MOST * PATIENCE + 1
    assert one.state() == STATE_ERROR
    one.end()


def test_the_receiver_of_sends_is_killed(ends):
    one, other = ends
    for number in range(4):
        other.receive(number, 0, LENGTH)
    for number in range(8):
        one.post("send", number, 0, LENGTH)
    assert statuses(one.poll(4)) == [0] * 4
    other.process.kill()
    assert statuses(one.poll(4, MOST * PATIENCE + 1)) == [RETRY_EXCEEDED, FLUSHED, FLUSHED, FLUSHED]
    one.end()


@pytest.mark.parametrize("operation", ["write", "read", "add"])
def test_the_requester_is_killed_and_the_responder_goes_on(ends, operation):
    one, other = ends
    start_stream(one, other, operation)
    one.process.kill()
    other.receive(1, 0, 100)
    assert other.poll(1, 0.5) == [], "a responder is told nothing"
    # It has something to say itself: then it learns.
    other.post("send", 2, 0, 100)
    assert statuses(other.poll(1, MOST * PATIENCE + 1)) == [RETRY_EXCEEDED]
    assert statuses(other.poll(1, 5)) == [FLUSHED], "its receive"
    other.end()


def test_another_process_can_take_the_place_of_the_dead(ends):
    one, other = ends
    host = other.host
    start_stream(one, other, "write")
    other.process.kill()
    assert statuses(one.answer(60))[0] == RETRY_EXCEEDED
    heir = End(host, user="nobody", env=other.env)
    one.make_qp()
    one.info = one.about()
    connect(one, heir)
    heir.fill(0, LENGTH, "heir")
    one.post("read", 1, 0, LENGTH, heir.at(0))
    assert statuses(one.poll()) == [0] and one.is_pattern(0, LENGTH, "heir")


def test_a_queue_pair_that_is_destroyed_is_as_good_as_dead(ends):
    one, other = ends
    other.close_qp()
    one.post("write", 1, 0, 100, other.at(0))
    begin = time.monotonic()
    assert statuses(one.poll(1, MOST * PATIENCE + 1)) == [RETRY_EXCEEDED]
    assert time.monotonic() - begin > 0.5 * LEAST


def test_a_timeout_of_zero_waits_for_ever(hosts):
    one, other = pair(*hosts, timeout=0, retry=0)
    other.process.kill()
    one.post("write", 1, 0, 100, other.at(0))
    assert one.poll(1, 2) == []
    one.end()
