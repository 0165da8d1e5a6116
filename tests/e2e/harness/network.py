"""Hosts made of network namespaces, joined by a veth pair, and removed whatever happens.

    left  = Host: veth0 10.77.0.1/24 fd77::1/64
    right = Host: veth0 10.77.0.2/24 fd77::2/64

Names carry the pid of the test, so that two runs on one machine do not meet.
"""

import ipaddress
import itertools
import json
import os
import re
import shlex
import subprocess

from .build import AS_NOBODY, ONE_USER
from .process import Failed, Process, eventually

_numbers = itertools.count()


def run(argv, check=True, seconds=20):
    """A short command of the test itself; its output, or Failed with it."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False)
    if check and done.returncode != 0:
        raise Failed(f"{shlex.join(argv)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Host:
    """One network namespace, and the processes that were started in it."""

    def __init__(self, build, last_byte):
        self.build = build
        self.namespace = f"vb{os.getpid()}-{next(_numbers)}"
        self.v4 = f"10.77.0.{last_byte}"
        self.v6 = f"fd77::{last_byte}"
        self.processes = []
        run(["ip", "netns", "add", self.namespace])
        self.sysctl("net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0")
        self.ip("link", "set", "lo", "up")

    def ip(self, *words):
        return run(["ip", "-n", self.namespace, *words])

    def sysctl(self, *settings):
        run(["ip", "netns", "exec", self.namespace, "sysctl", "-q", "-w", *settings])

    def start(self, argv, user="root", env=None, tool=("run", "--")):
        """Starts a program behind `verbena run --` (`tool`: other words before it, or None for the program itself)."""
        words = ["ip", "netns", "exec", self.namespace]
        if user == "nobody" and not ONE_USER:
            words += AS_NOBODY
        words += ["env", *(f"{name}={value}" for name, value in {**self.build.environment(), **(env or {})}.items())]
        if tool is not None:
            words += [str(self.build.tool), *tool]
        process = Process(words + list(argv))
        self.processes.append(process)
        return process

    def run(self, argv, seconds=30, status=0, **how):
        """Starts a program, waits for its end, and returns its output."""
        return self.start(argv, **how).finish(seconds, status)

    def directory(self, pid, user="root"):
        """The counts of the address-handle directory of a process, from outside; empty where it has none (yet)."""
        for process in json.loads(self.verbena("ah", "top", "--once", "--json", user=user))["processes"]:
            if process["pid"] == pid and process["directories"]:
                return process["directories"][0]["counts"]
        return {}

    def verbena(self, *words, seconds=30, status=0, **how):
        """A subcommand of the tool."""
        return self.start([], tool=words, **how).finish(seconds, status)

    def wait_listening(self, port, process, seconds=20):
        """Until a TCP port is listened on, or the process that should do so has ended."""
        wanted = f":{port:04X} "

        def listening():
            if not process.running():
                raise Failed(f"it ended before it listened on port {port}\n{process.describe()}")
            tables = run(["ip", "netns", "exec", self.namespace, "cat", "/proc/net/tcp", "/proc/net/tcp6"])
            return any(wanted in line and " 0A " in line for line in tables.splitlines())

        eventually(listening, seconds, f"port {port} is listened on")

    def gids(self, user="root", env=None):
        """GID index -> address of the first device, as ibv_devinfo tells it: IPv4 addresses as such."""
        found = {}
        for index, gid in re.findall(r"GID\[\s*(\d+)\]:\s*([0-9a-fA-F:.]+)",
                                     self.run(["ibv_devinfo", "-v"], user=user, env=env)):
            address = ipaddress.IPv6Address(gid)
            found.setdefault(int(index), str(address.ipv4_mapped or address))
        return found

    def gid_index(self, address, **how):
        gids = self.gids(**how)
        for index, gid in gids.items():
            if gid == str(ipaddress.ip_address(address)):
                return index
        raise Failed(f"{address} is not among the GIDs {gids}")

    def unix_names(self):
        """The abstract Unix sockets of the namespace."""
        lines = run(["ip", "netns", "exec", self.namespace, "cat", "/proc/net/unix"]).splitlines()
        return sorted({line.split()[-1] for line in lines if " @" in line})

    def remove(self):
        """Ends every process, then the namespace. Returns what the dead left behind: it must be nothing."""
        for process in self.processes:
            process.stop()
        try:
            left = self.unix_names()
        finally:
            run(["ip", "netns", "delete", self.namespace], check=False)
        return left

    def report(self):
        return "\n".join(process.describe() for process in self.processes)


def join(left, right, mtu=9000):
    """Gives the two hosts an interface veth0 each, on one wire, with an IPv4 and an IPv6 address."""
    run(["ip", "link", "add", "veth0", "netns", left.namespace, "type", "veth", "peer", "name", "veth0", "netns",
         right.namespace])
    for host, other in ((left, right), (right, left)):
        host.ip("link", "set", "veth0", "mtu", str(mtu), "up")
        host.ip("address", "add", f"{host.v4}/24", "dev", "veth0")
        host.ip("address", "add", f"{host.v6}/64", "dev", "veth0", "nodad")
        host.ip("route", "add", "default", "via", other.v4)
    eventually(lambda: "tentative" not in left.ip("address") + right.ip("address"), 10, "addresses are usable")
