"""The program directory_checks (tests/directory/checks): many looks at a directory in one process, a line for each."""

import json

from harness.process import Failed

NAMES = [
    "a_thousand_peers_in_rotation_with_room_for_64",
    "four_threads_in_rotation_share_64_handles",
    "ten_thousand_destinations_at_once_are_admitted_a_few_at_a_time",
    "a_budget_of_handles_holds_and_concerns_nobody_else",
    "a_rate_of_creations_holds_and_concerns_nobody_else",
    "a_budget_of_memory_holds",
    "no_look_up_crosses_tenants",
    "a_tenant_that_goes_gives_all_back_and_says_so",
    "what_keeps_a_domain_is_named_with_its_place",
    "what_nobody_closed_is_reported_with_its_place",
    "effective_attributes_are_those_that_the_device_was_given",
    "hop_limit_and_traffic_class_arrive_as_told",
    "twenty_replies_take_one_creation_in_either_family",
]


class Checks:
    """One run of the program on a host; each check can be waited for by its name."""

    def __init__(self, host, words, **how):
        self.process = host.start([*host.build.program("directory_checks"), *words], **how)

    def must(self, name, seconds=80):
        """The check has come out well; what it saw is printed."""
        line = self.process.wait_line(f"check {name} ", seconds)
        report = json.loads(line.split(" ", 2)[2])
        if not report["ok"]:
            raise Failed(f"{name}:\n" + "\n".join(report["wrong"]) + f"\n{json.dumps(report['seen'], indent=2)}")
        for what, value in report["seen"].items():
            print(f"{what}: {value}")

    def end(self):
        """No check was made that has no test."""
        self.process.finish(60, status=None)
        made = [line.split()[1] for line in self.process.output().splitlines() if line.startswith("check ")]
        assert made == NAMES, made
        assert self.process.returncode() == 0, self.process.describe()
