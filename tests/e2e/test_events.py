"""Programs that sleep on a completion channel: each completion that was asked for wakes."""

import pytest


def exchange(left, right, user, env):
    programs = [host.start([*host.build.program("two_queues"), "--gid-index", host.gid_index(host.v4, user=user, env=env)],
                           user=user, env=env) for host in (left, right)]
    ready = [program.wait_line("ready", 40).split(" ", 1)[1] for program in programs]
    for program, other in zip(programs, reversed(ready)):
        program.say(f"peer {other}")
    for program in programs:
        program.wait_line("done", 60)
    for program in programs:
        program.say("stop")
        program.finish(20)


def test_two_queues_on_one_channel_never_miss_an_event_on_one_host(host, user, path):
    exchange(host, host, user, path)


def test_two_queues_on_one_channel_never_miss_an_event_between_two_hosts(hosts, user):
    exchange(*hosts, user, {})
