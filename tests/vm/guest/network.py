"""Kernel rxe devices in the virtual machine, and a host without one. See conftest.py for the picture."""

import ipaddress
import itertools
import pathlib
import subprocess

from harness.network import Host, join, run
from harness.process import Failed, eventually

__all__ = ["Host", "Kernel", "device_of"]

_names = itertools.count()
PAIR = {"rxea": ("10.9.0.1", "fd09::1"), "rxeb": ("10.9.0.2", "fd09::2")}
RULES = {101: ("rxea", "rxeb"), 102: ("rxeb", "rxea")}
DEVICES = pathlib.Path("/sys/class/infiniband")


def batch(lines, *options):
    """Several `ip` commands in one process, for each new one is slow under emulation."""
    done = subprocess.run(["ip", *options, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True,
                          timeout=30, check=False)
    if done.returncode != 0:
        raise Failed(f"ip -batch: {done.stderr}")


def device_of(host):
    """The device that a program on this host uses."""
    return "rxe0" if isinstance(host, Kernel) else "verbena0"


class Kernel(Host):
    """The guest's first network namespace. What is started here meets the real libibverbs, and nothing of Verbena's RNIC.

    The kernel's rxe (6.x) has its UDP sockets in this namespace only, so that every rxe device must be here.
    """

    def __init__(self, build):
        self.build = build
        self.namespace = f"kernel-{next(_names)}"
        self.processes = []
        self.devices = []
        self.links = []
        self.rules = False
        run(["ip", "netns", "attach", self.namespace, "1"])
        self.v4, self.v6 = "10.77.0.1", "fd77::1"
        self.sysctl("net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0")

    def join(self, host):
        """A wire to another host, with the device rxe0 at this end."""
        join(self, host)
        self.links.append("veth0")
        self.add_device("rxe0", "veth0", (self.v4, self.v6))

    def make_pair(self):
        """rxe0 on rxea and rxe1 on rxeb, one wire. Rules lead what one sends to the other over it, and not round lo."""
        self.sysctl("net.ipv4.conf.all.accept_local=1", "net.ipv4.conf.default.accept_local=1",
                    "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0",
                    "net.ipv4.conf.all.arp_ignore=1")
        lines = ["link add rxea mtu 9000 type veth peer name rxeb mtu 9000"]
        for link, (v4, v6) in PAIR.items():
            lines += [f"link set {link} up", f"address add {v4}/24 dev {link}", f"address add {v6}/64 dev {link} nodad"]
        self.links.append("rxea")
        batch(lines)
        for family, which in (("-4", 0), ("-6", 1)):
            lines = [f"rule add pref 5 iif lo to {PAIR[other][which]} lookup {table}" for table, (_, other) in RULES.items()]
            batch([*lines, "rule add pref 10 lookup local", "rule delete pref 0"], family)
        self.lead()
        self.rules = True
        self.add_device("rxe0", "rxea", PAIR["rxea"])
        self.add_device("rxe1", "rxeb", PAIR["rxeb"])

    def lead(self):
        """The routes of the pair, which the kernel forgets with an address or while a link is down."""
        for family, which in (("-4", 0), ("-6", 1)):
            batch([f"route replace {PAIR[other][which]} dev {link} src {PAIR[link][which]} table {table}"
                   for table, (link, other) in RULES.items()], family)

    def add_device(self, device, link, addresses):
        eventually(lambda: "tentative" not in self.ip("address", "show", "dev", link), 10, f"addresses of {link} are usable")
        run(["rdma", "link", "add", device, "type", "rxe", "netdev", link])
        self.devices.append(device)
        for address in addresses:
            eventually(lambda wanted=address: self.find_gid(device, wanted) is not None, 10, f"{device} has {address}")

    def restart_device(self, device, link, *addresses):
        """As when its machine has started again: nothing is left of what there was."""
        run(["rdma", "link", "delete", device])
        self.devices.remove(device)
        self.add_device(device, link, addresses)

    def find_gid(self, device, address):
        """The index of the GID for this address, or None."""
        wanted = ipaddress.ip_address(address)
        for file in (DEVICES / device / "ports" / "1" / "gids").iterdir():
            try:
                gid = ipaddress.IPv6Address(file.read_text().strip())
            except OSError:
                continue
            if (gid.ipv4_mapped or gid) == wanted:
                return int(file.name)
        return None

    def gid_index(self, address, device="rxe0", **_how):
        index = self.find_gid(device, address)
        assert index is not None, f"{device} has no GID for {address}"
        return index

    def start(self, argv, user="root", env=None, tool=None):
        return super().start(argv, user, env, tool)

    def verbena(self, *words, seconds=30, status=0, **how):
        """A subcommand of the tool, which has Verbena's RNIC within it and shows the kernel's devices beside its own."""
        return self.start([], tool=words, **how).finish(seconds, status)

    def remove(self):
        for process in self.processes:
            process.stop()
        for device in self.devices:
            run(["rdma", "link", "delete", device], check=False)
        for link in self.links:
            run(["ip", "link", "delete", link], check=False)
        if self.rules:
            for family in ("-4", "-6"):
                batch(["rule add pref 0 lookup local", "rule delete pref 10", "rule delete pref 5", "rule delete pref 5"],
                      family)
        run(["ip", "netns", "delete", self.namespace], check=False)
