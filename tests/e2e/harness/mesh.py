"""Processes of programs/udmesh.cc that know each other, and what they tell."""

import json

from .process import Failed, eventually


class Member:
    """One udmesh process. `report()` is its last progress, `stop()` its final word."""

    def __init__(self, host, number, index, user, env, options):
        self.number = number
        self.process = host.start([*host.build.program("udmesh"), "--id", number, "--gid-index", index, *options],
                                  user=user, env=env)

    def address(self):
        _, gid, qpn = self.process.wait_line("ready", 40).split()
        return gid, qpn

    def report(self):
        line = self.process.last_line("progress ")
        return json.loads(line.split(" ", 1)[1]) if line else {"sent": {}, "heard": {}}

    def heard(self):
        """Datagrams by sender, so far."""
        return {int(number): heard["datagrams"] for number, heard in self.report()["heard"].items()}

    def final(self, seconds=20):
        """Its final word, once it has been told to stop."""
        self.process.finish(seconds)
        line = self.process.last_line("final ")
        if line is None:
            raise Failed(f"no final word\n{self.process.describe()}")
        return json.loads(line.split(" ", 1)[1])

    def stop(self, seconds=20):
        self.process.say("stop")
        return self.final(seconds)


def stop_all(members):
    """The final words of all. Told one by one, each would hear the others for as long as it has patience."""
    for member in members:
        member.process.say("stop")
    return [member.final() for member in members]


def start(places, user="root", env=None, options=(), envs=None, family="v4"):
    """One member for each host of `places`, numbered from 0, all ready and none yet told of the others. `envs` are
    further variables, for each member its own; `family` is v4 or v6."""
    indices = {host: host.gid_index(getattr(host, family), user=user, env=env) for host in dict.fromkeys(places)}
    members = []
    for number, host in enumerate(places):
        own = {**(env or {}), **(envs[number] if envs else {})}
        members.append(Member(host, number, indices[host], user, own, options))
    for member in members:
        member.address()
    return members


def connect(members, senders=None):
    """Tells the senders (default: all) of every other member, the rest of none, and lets them go."""
    addresses = {member.number: member.address() for member in members}
    for member in members:
        if senders is None or member in senders:
            for number, (gid, qpn) in addresses.items():
                if number != member.number:
                    member.process.say(f"peer {number} {gid} {qpn}")
        member.process.say("go")


def send_counted(members, quiet_for=20):
    """Lets member 0 send its --count to member 1, and waits until all is sent and nothing more comes."""
    connect(members, senders=[members[0]])
    members[0].process.wait_line("sent", 60)
    last = []

    def quiet():
        last.append(members[1].process.last_line("progress "))
        return len(last) > quiet_for and last[-1] is not None and len(set(last[-quiet_for:])) == 1

    eventually(quiet, 60, "nothing more comes")


def drops(host, **how):
    """Named drops of all processes of a host together, without the zeros."""
    total = {}
    for process in json.loads(host.verbena("drops", "--json", **how))["processes"]:
        for device in process["devices"]:
            for name, count in device["drops"].items():
                total[name] = total.get(name, 0) + count
    return {name: count for name, count in total.items() if count}
