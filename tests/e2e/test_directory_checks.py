"""A directory on the software RNIC under pressure, its tenants, attributes and replies: a test for each check of the program.

The same on the kernel's device: tests/vm/test_directory_checks.py."""

import pytest

from harness.checks import NAMES, Checks
from harness.network import Host


@pytest.fixture(scope="module")
def checks(build):
    host = Host(build, 1)
    try:
        words = ["--near", "verbena0", "--far", "verbena0", "--v4", "127.0.0.1", "--v6", "::1", "--away", "127.1.0.0"]
        yield Checks(host, words, env={"VERBENA_DEVICES": "lo", "VERBENA_STRICT": "on"})
    finally:
        host.remove()


@pytest.mark.parametrize("name", NAMES)
def test_check(checks, name):
    checks.must(name)


def test_every_check_has_its_test(checks):
    checks.end()
    assert "was destroyed while" not in checks.process.output(), checks.process.describe()
