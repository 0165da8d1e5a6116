"""Whether a process that has nothing to do does nothing."""

import pathlib
import time


def processor_ticks(pid):
    """What a process has used so far, in ticks of 10 ms."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def wake_ups(pid):
    """How often each thread of a process went to sleep by itself so far, summed."""
    total = 0
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        total += int(status.read_text(encoding="ascii").split("voluntary_ctxt_switches:")[1].split()[0])
    return total


def sleeps_for(pid, seconds):
    """Whether it does not wake meanwhile, but for the tool itself, which looks once a second whether it is to end. So
    also of who polls without a pause."""
    woken = wake_ups(pid)
    time.sleep(seconds)
    return wake_ups(pid) - woken <= max(1, seconds)
