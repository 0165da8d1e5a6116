"""What vanishes has a name, and `verbena drops` tells it from outside while the programs run."""

import json

import pytest

from harness import mesh
from harness.build import ONE_USER
from harness.process import eventually


def test_a_queue_pair_that_is_not_there(host, user, path):
    first, second = mesh.start([host] * 2, user, path, ["--rate", 500])
    gid, qpn = second.address()
    first.process.say(f"peer 1 {gid} {int(qpn) ^ 0x800}")
    for member in (first, second):
        member.process.say("go")
    eventually(lambda: mesh.drops(host, user=user).get("unknown_qpn", 0) > 10, 20, "the receiver names its drops")
    assert first.stop()["bad_completions"] == 0
    assert second.stop()["heard"] == {}


def test_a_process_that_has_ended(host, user):
    first, second = mesh.start([host] * 2, user, {}, ["--rate", 500])
    mesh.connect([first, second])
    eventually(lambda: first.heard() and second.heard(), 20, "they hear each other")
    second.process.kill()
    second.process.finish(10, status=None)
    eventually(lambda: sum(mesh.drops(host, user=user).values()) > 10, 20, "the sender names its drops")
    assert first.stop()["bad_completions"] == 0


@pytest.mark.skipif(ONE_USER, reason="needs two users; run as root")
def test_every_row_is_there_and_only_of_ones_own_processes(host):
    # Two users cannot share UDP port 4791 of one address, so one of them does without.
    mine = mesh.start([host], "nobody", {}, [])
    roots = mesh.start([host], "root", {"VERBENA_UDP": "off"}, [])
    for member in (*mine, *roots):
        member.process.say("go")
    all_of_them = json.loads(host.verbena("drops", "--json", user="root"))
    assert {process["pid"] for process in all_of_them["processes"]} == {mine[0].process.pid, roots[0].process.pid}
    seen = json.loads(host.verbena("drops", "--json", user="nobody"))
    assert {process["pid"] for process in seen["processes"]} == {mine[0].process.pid}
    assert "icrc_mismatch" in seen["processes"][0]["devices"][0]["drops"]
    for member in (*mine, *roots):
        member.stop()
