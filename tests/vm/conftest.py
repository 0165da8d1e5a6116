"""Fixtures of the tests that run in the virtual machine: two kernel rxe devices, and a host without one.

    rxe0 on rxea  10.9.0.1  fd09::1  one wire  rxe1 on rxeb 10.9.0.2 fd09::2    (kernel)
    rxe0 on veth0 10.77.0.1 fd77::1  one wire  veth0 10.77.0.2 fd77::2    of another host: Verbena's (kernel_and_host)

The rxe devices are in the guest's first network namespace. Networks last for a file of tests, processes for a test.
"""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "e2e"))

from harness.build import Build  # noqa: E402
from harness.printed import pytest_terminal_summary  # noqa: E402, F401
from guest import network  # noqa: E402


@pytest.fixture(scope="session")
def build():
    tree = os.environ.get("VERBENA_BUILD")
    assert tree and os.path.isdir("/run/vm"), "these tests run in the virtual machine: start them with tests/vm/run"
    return Build(tree, "/nonexistent")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.failed_call = outcome.get_result().failed


@pytest.fixture(scope="module")
def pair(build):
    kernel = network.Kernel(build)
    try:
        kernel.make_pair()
        yield kernel
    finally:
        kernel.remove()


@pytest.fixture(scope="module")
def wire(build):
    host = network.Host(build, 2)
    kernel = network.Kernel(build)
    try:
        kernel.join(host)
        yield kernel, host
    finally:
        kernel.remove()
        left = host.remove()
    assert left == [], "the dead left their names behind"


@pytest.fixture
def kernel(request, pair):
    """The first network namespace with rxe0 and rxe1 on one wire. A test that changes addresses puts them back."""
    yield pair
    _end(request, pair)


@pytest.fixture
def kernel_and_host(request, wire):
    """rxe0 in the first network namespace, and another host on its wire on which Verbena's RNIC runs."""
    yield wire
    _end(request, *wire)


def _end(request, *hosts):
    """The processes of one test: told of where it failed, and ended."""
    for host in hosts:
        if getattr(request.node, "failed_call", True):
            print(host.report())
        for process in host.processes:
            process.stop()
        host.processes.clear()
