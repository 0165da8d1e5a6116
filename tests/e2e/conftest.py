"""Fixtures: the build, the users a test runs as, the ways packets take on one host, and hosts."""

import os
import pathlib
import signal
import tempfile

import pytest

from harness.build import Build
from harness.network import Host, join
from harness.printed import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]

# As root, every test runs twice, unless VERBENA_E2E_USERS says nobody. Otherwise (one) as who we are: the runner makes a
# user namespace, where there is one user.
USERS = {"all": ["root", "nobody"], "nobody": ["nobody"], "one": ["root"]}[os.environ.get("VERBENA_E2E_USERS", "all")]


# A test run that is told to end still removes its processes and networks.
signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def build():
    tree = os.environ.get("VERBENA_BUILD")
    assert tree, "set VERBENA_BUILD to the build tree, or start the tests with tests/e2e/run"
    with tempfile.TemporaryDirectory(prefix="verbena-e2e-") as scratch:
        os.chmod(scratch, 0o755)
        yield Build(tree, scratch)


@pytest.fixture(params=USERS)
def user(request):
    return request.param


@pytest.fixture
def one_user():
    """For what is long, and in which root meets nothing that another user does not."""
    return USERS[-1]


@pytest.fixture(params=["shm", "udp"])
def path(request):
    """The way between two processes of one host, as environment variables."""
    return {"VERBENA_SHM": "on" if request.param == "shm" else "off"}


@pytest.fixture
def folder(tmp_path_factory):
    """A folder that every user can write to."""
    made = pathlib.Path(tempfile.mkdtemp(prefix="verbena-e2e-"))
    os.chmod(made, 0o777)
    yield made
    for file in made.iterdir():
        file.unlink()
    made.rmdir()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.failed_call = outcome.get_result().failed


def make_hosts(request, build, mtu):
    hosts = []
    try:
        hosts.append(Host(build, 1))
        hosts.append(Host(build, 2))
        join(*hosts, mtu=mtu)
        yield tuple(hosts)
    finally:
        if getattr(request.node, "failed_call", True):
            for host in hosts:
                print(host.report())
        left = [name for host in hosts for name in host.remove()]
    assert left == [], "the dead left their names behind"


@pytest.fixture
def hosts(request, build):
    """Two hosts on one wire with jumbo frames: the RoCE MTU is 4096."""
    yield from make_hosts(request, build, 9000)


@pytest.fixture
def plain_hosts(request, build):
    """Two hosts on one wire with ordinary frames: the RoCE MTU is 1024."""
    yield from make_hosts(request, build, 1500)


@pytest.fixture
def host(hosts):
    """One host; its wire leads to another on which nothing runs."""
    return hosts[0]
