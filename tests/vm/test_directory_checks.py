"""A directory on the kernel's rxe under pressure, its tenants, attributes and replies: a test for each check of the program."""

import pathlib

import pytest

from guest.network import batch
from harness.checks import NAMES, Checks

# Led to the far device by a router that is in the neighbour table only; nobody forwards there.
AWAY, ROUTER = "10.8.0.0/16", "10.9.0.254"


@pytest.fixture(scope="module")
def checks(pair):
    mac = pathlib.Path("/sys/class/net/rxeb/address").read_text(encoding="ascii").strip()
    batch([f"neighbour replace {ROUTER} lladdr {mac} nud permanent dev rxea",
           f"route replace {AWAY} via {ROUTER} dev rxea src 10.9.0.1 onlink table 101",
           f"rule add pref 5 iif lo to {AWAY} lookup 101"])
    try:
        # An emulated processor needs its time for a thousand.
        yield Checks(pair, ["--rounds", "1", "--near", "rxe0", "--far", "rxe1", "--v4", "10.9.0.2", "--v6", "fd09::2", "--away", "10.8.0.0"])
    finally:
        batch([f"rule delete pref 5 to {AWAY}"])


@pytest.mark.parametrize("name", NAMES)
def test_check(checks, name):
    checks.must(name)


def test_every_check_has_its_test(checks):
    checks.end()
