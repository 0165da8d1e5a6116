"""A server and a client of one program: started, the second when the first listens, both waited for."""

import re

PORT = 18515


class Way:
    """Where two programs meet: the hosts they run on, the addresses they use, the user, the settings of the device."""

    def __init__(self, server, client, family="v4", user="root", env=None):
        self.server, self.client, self.user = server, client, user
        self.env = env or {}
        self.addresses = (getattr(server, family), getattr(client, family))
        self._indices = {}

    def gid_index(self, end):
        """The GID index of the server's (0) or the client's (1) address."""
        place = (self.server, self.client)[end], self.addresses[end]
        if place not in self._indices:
            host, address = place
            self._indices[place] = host.gid_index(address, user=self.user, env=self.env)
        return self._indices[place]

    def start(self, end, argv, **how):
        host = (self.server, self.client)[end]
        env = {**self.env, **how.pop("env", {})}
        return host.start(argv, user=self.user, env=env, **how)

    def run(self, command, port=PORT, index_option="-g", seconds=60, to_server=()):
        """The server's words are `command`, the client's too, and the server's address. Returns what both print."""
        words = [*command, "-p", port]
        one = self.start(0, [*words, *to_server, index_option, self.gid_index(0)])
        self.server.wait_listening(port, one)
        other = self.start(1, [*words, index_option, self.gid_index(1), self.server.v4])
        output = other.finish(seconds)
        return one.finish(20), output


def sizes(output):
    """The message sizes in a table of perftest. Where its two clocks disagree it writes "inf" for a time."""
    return [int(size) for size in re.findall(r"^\s*(\d+)\s+\d+\s+(?:\d+\.\d+|inf)", output, re.MULTILINE)]
