"""Programs that dlopen() libibverbs find the software RNIC as well as those that are linked with it."""

import pytest


@pytest.mark.parametrize("name", ["libibverbs.so.1", "libibverbs.so"])
def test_by_name_and_version(host, user, name):
    output = host.run([*host.build.program("dlopen_verbs"), name], user=user)
    assert output.splitlines() == ["verbena0 opened"], output
