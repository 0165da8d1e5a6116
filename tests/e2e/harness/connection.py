"""The two ends of a connection (programs/connection.py), told what to do from here."""

import json

SUCCESS, LOCAL_PROTECTION, FLUSHED = 0, 4, 5
REMOTE_INVALID_REQUEST, REMOTE_ACCESS, REMOTE_OPERATION, RETRY_EXCEEDED, RNR_RETRY_EXCEEDED = 9, 10, 11, 12, 13
STATE_RTS, STATE_ERROR = 3, 6


class End:
    """One process with one queue pair. A method that is not here is one of the program's Endpoint."""

    def __init__(self, host, transport="RC", address=None, size=1 << 20, user="root", env=None):
        self.host, self.env = host, env
        index = host.gid_index(address or host.v4, user=user, env=env)
        self.process = host.start([*host.build.program("connection"), transport, index, size], user=user, env=env)
        self.info = json.loads(self.process.wait_line("ready ", 30).split(" ", 1)[1])

    def say(self, name, *arguments, **named):
        """Tells it to do something; answer() gives what came of it."""
        self._seen = len(self.process.lines)
        self.process.say(json.dumps([name, *arguments, *([{"named": named}] if named else [])]))

    def answer(self, seconds=40):
        return json.loads(self.process.wait_line("answer ", seconds, since=self._seen).split(" ", 1)[1])

    def __getattr__(self, name):
        def ask(*arguments, **named):
            self.say(name, *arguments, **named)
            return self.answer()
        return ask

    def at(self, offset=0):
        """What a request of the other end says to mean this place."""
        return [self.info["address"] + offset, self.info["rkey"]]

    def end(self):
        self.say("quit")
        self.process.finish(20)


def statuses(completions):
    return [completion[1] for completion in completions]


def connect(one, other, **options):
    one.connect(other.info, **options)
    options["psn"], options["peer_psn"] = options.get("peer_psn", 0), options.get("psn", 0)
    other.connect(one.info, **options)


def pair(left, right, transport="RC", family="v4", size=1 << 20, user="root", env=None, envs=None, **options):
    """Two ends that are connected."""
    envs = envs or ({}, {})
    one = End(left, transport, getattr(left, family), size, user, {**(env or {}), **envs[0]})
    other = End(right, transport, getattr(right, family), size, user, {**(env or {}), **envs[1]})
    connect(one, other, **options)
    return one, other
