"""Addresses are added, removed and changed, and the link goes down and up, while traffic runs: the GID table, the events
and the directory follow."""

import json

from harness import mesh
from harness.process import eventually


class Watcher:
    """programs/gid_watch.cc on a host."""

    def __init__(self, host, user):
        self.process = host.start(host.build.program("gid_watch"), user=user)
        self.process.wait_line("gids")

    def table(self):
        """GID index -> GID, and the state of the port."""
        words = self.process.last_line("gids").split(" ", 1)[1]
        gids, state = words.rsplit(" port ", 1)
        return {int(index): gid for index, gid in json.loads(gids).items()}, state

    def events(self):
        return [line for line in self.process.lines if line.startswith("event ")]


def traffic(hosts, user):
    members = mesh.start(list(hosts), user, {}, ["--rate", 500])
    mesh.connect(members)
    eventually(lambda: flows(members), 20, "traffic flows")
    return members


def flows(members, since=None):
    since = since or [{}, {}]
    return all(member.heard().get(1 - member.number, 0) > since[member.number].get(1 - member.number, 0)
               for member in members)


def still_flows(members):
    since = [member.heard() for member in members]
    eventually(lambda: flows(members, since), 20, "traffic still flows")


def finish(members):
    for member in members:
        final = member.stop()
        assert final["bad_completions"] == 0 and final["damaged"] == 0, final


def test_an_address_that_comes_and_goes_is_a_gid_that_comes_and_goes(hosts, user):
    left, _ = hosts
    members = traffic(hosts, user)
    watcher = Watcher(left, user)
    before, _ = watcher.table()
    for address, gid in (("10.77.0.99/24", "::ffff:10.77.0.99"), ("fd77::99/64", "fd77::99")):
        seen = len(watcher.events())
        left.ip("address", "add", address, "dev", "veth0", *(["nodad"] if ":" in address else []))
        eventually(lambda gid=gid: gid in watcher.table()[0].values(), 10, f"{gid} is in the table")
        assert {index: watcher.table()[0][index] for index in before} == before, "no other GID moved"
        eventually(lambda seen=seen: any("GID" in line for line in watcher.events()[seen:]), 10, "an event tells")
        left.ip("address", "delete", address, "dev", "veth0")
        eventually(lambda gid=gid: gid not in watcher.table()[0].values(), 10, f"{gid} has left the table")
        assert watcher.table()[0] == before
    still_flows(members)
    finish(members)


def test_an_address_that_changes_keeps_the_others_where_they_are(hosts, user):
    left, _ = hosts
    left.ip("address", "add", "10.77.0.50/24", "dev", "veth0")
    watcher = Watcher(left, user)
    before, _ = watcher.table()
    index = next(index for index, gid in before.items() if gid == "::ffff:10.77.0.50")
    left.ip("address", "delete", "10.77.0.50/24", "dev", "veth0")
    left.ip("address", "add", "10.77.0.51/24", "dev", "veth0")
    eventually(lambda: "::ffff:10.77.0.51" in watcher.table()[0].values(), 10, "the new GID is in the table")
    after, _ = watcher.table()
    assert "::ffff:10.77.0.50" not in after.values()
    assert {key: gid for key, gid in after.items() if key in before and key != index} == \
        {key: gid for key, gid in before.items() if key != index}


def test_the_port_follows_the_link_and_traffic_comes_back(hosts, user):
    left, _ = hosts
    members = traffic(hosts, user)
    watcher = Watcher(left, user)
    left.sysctl("net.ipv6.conf.veth0.keep_addr_on_down=1")
    assert watcher.table()[1] == "active"
    left.ip("link", "set", "veth0", "down")
    eventually(lambda: watcher.table()[1] != "active", 10, "the port is down")
    eventually(lambda: any("port error" in line for line in watcher.events()), 10, "the event port error is told")
    left.ip("link", "set", "veth0", "up")
    eventually(lambda: watcher.table()[1] == "active", 10, "the port is up again")
    eventually(lambda: any("port active" in line for line in watcher.events()), 10, "the event port active is told")
    still_flows(members)
    finish(members)


def test_traffic_survives_addresses_that_churn(hosts, user):
    left, right = hosts
    members = traffic(hosts, user)
    for number in range(100, 130):
        for host in (left, right):
            host.ip("address", "add", f"10.77.0.{number}/24", "dev", "veth0")
            host.ip("address", "delete", f"10.77.0.{number}/24", "dev", "veth0")
    still_flows(members)
    finish(members)


def test_the_mtu_changes_while_connections_are_made(hosts, user):
    near, far = hosts
    program = near.start([*near.build.program("reconnect"), str(near.gid_index(near.v4)), f"::ffff:{far.v4}", "3"],
                         user=user)
    program.wait_line("running")
    changes = 0
    while program.returncode() is None and changes < 2000:
        near.ip("link", "set", "veth0", "mtu", "9000" if changes % 2 else "1500")
        changes += 1
    program.finish(20)
    assert int(program.last_line("rounds").split()[1]) > 0 and changes > 10, program.describe()
