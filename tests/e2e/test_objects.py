"""A pyverbs program (Debian's python3-pyverbs, unmodified) for each object that the data path does not need."""

import pytest

OBJECTS = ["memory_windows", "registered_again", "on_demand", "device_memory", "parent_domain", "xrc", "completion_queues"]


@pytest.fixture
def made(host, user):
    return host.run(host.build.program("objects"), user=user).split()


def test_every_object_is_made_and_used(made):
    assert made == [*OBJECTS, "ok"]
