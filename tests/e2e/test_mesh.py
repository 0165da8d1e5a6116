"""Sixteen processes on one host, each sending to each other; then four of them are killed in mid-traffic."""

import pytest

from harness import mesh
from harness.process import eventually

COUNT = 16


def all_hear(members, more_than):
    """True where each member has heard more datagrams of each other one than `more_than` says."""
    for member in members:
        heard = member.heard()
        for other in members:
            if other is not member and heard.get(other.number, 0) <= more_than[member.number].get(other.number, 0):
                return False
    return True


def clean(final):
    return final["bad_completions"] == 0 and final["damaged"] == 0 and final["unfinished"] == 0


def test_each_hears_each_and_nothing_is_left_when_they_end(host, user, path):
    members = mesh.start([host] * COUNT, user, path, ["--rate", 50])
    mesh.connect(members)
    eventually(lambda: all_hear(members, {m.number: {} for m in members}), 40, "each hears each")
    for final in mesh.stop_all(members):
        assert clean(final), final
        assert all(heard["copies"] == 0 for heard in final["heard"].values()), final
    assert host.unix_names() == []


def rings(member):
    """How many rings of shared memory a process has mapped, its own and those that others write for it."""
    with open(f"/proc/{member.process.pid}/maps", encoding="utf-8") as maps:
        return sum("verbena-ring" in line for line in maps)


def test_the_rest_goes_on_when_four_are_killed(host, user, path):
    members = mesh.start([host] * COUNT, user, path, ["--rate", 50])
    mesh.connect(members)
    eventually(lambda: all_hear(members, {m.number: {} for m in members}), 40, "each hears each")
    victims, rest = members[:4], members[4:]
    for victim in victims:
        victim.process.kill()
    for victim in victims:
        victim.process.finish(10, status=None)
    before = {member.number: member.heard() for member in rest}
    eventually(lambda: all_hear(rest, before), 20, "the rest still hear each other")
    most = 2 * (len(rest) - 1) + 1  # one a direction and living peer, and the one to itself
    eventually(lambda: all(rings(member) <= most for member in rest), 20, "the rings of the dead are let go")
    for final in mesh.stop_all(rest):
        assert clean(final), final
    assert host.unix_names() == []


def test_a_newcomer_takes_the_place_of_the_dead(host, user):
    first = mesh.start([host] * 2, user, {}, ["--rate", 200])
    mesh.connect(first)
    eventually(lambda: all_hear(first, {m.number: {} for m in first}), 20, "both hear each other")
    first[1].process.kill()
    first[1].process.finish(10, status=None)
    second = mesh.start([host] * 2, user, {}, ["--rate", 200])
    mesh.connect(second)
    eventually(lambda: all_hear(second, {m.number: {} for m in second}), 20, "the newcomers hear each other")
    dead, *living = (int(member.address()[1], 0) >> 16 for member in [first[1], first[0], *second])
    assert len(set(living)) == 3, "the slots of the living differ"
    held = {name.rsplit("/", 1)[1] for name in host.unix_names()}
    assert held == {str(slot) for slot in living}, f"the slot of the dead, {dead}, is free unless a newcomer has it"
    for final in mesh.stop_all([first[0], *second]):
        assert clean(final), final


def test_sixteen_processes_on_two_hosts(hosts):
    members = mesh.start(list(hosts) * (COUNT // 2), "nobody", {}, ["--rate", 50])
    mesh.connect(members)
    eventually(lambda: all_hear(members, {m.number: {} for m in members}), 40, "each hears each")
    for victim in members[:4]:
        victim.process.kill()
        victim.process.finish(10, status=None)
    rest = members[4:]
    before = {member.number: member.heard() for member in rest}
    eventually(lambda: all_hear(rest, before), 20, "the rest still hear each other")
    for final in mesh.stop_all(rest):
        assert clean(final), final


def test_closing_ends_although_a_peer_goes_on_sending(host, user, path):
    members = mesh.start([host] * 2, user, path, ["--rate", 20000])
    mesh.connect(members)
    eventually(lambda: all(member.heard() for member in members), 20, "they hear each other")
    members[0].stop(10)
    assert members[1].process.running()
    members[1].stop()
