"""What an address costs on the kernel's rxe: bench/ah_on_device between two rxe devices. Ratios only: the processor is
emulated, and other programs run beside it."""

import json
import os
import pathlib


def test_a_directory_hit_is_far_cheaper_than_a_handle_for_each_send(kernel):
    words = ["--device", "rxe0", "--peer-device", "rxe1", "--to", "10.9.0.2"]
    words += ["--rounds", os.environ.get("VERBENA_VM_ROUNDS", "3"), "--datagrams", "1500"]
    process = kernel.start([str(kernel.build.tree / "bin" / "ah_on_device"), *words])
    output = process.finish(120)
    report = json.loads(output[output.index("{"):])
    pathlib.Path("/run/vm/ah_on_device.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))
    ratios = report["ratios"]
    assert ratios["create_over_hit"] > 100, report
    assert ratios["directory_over_fixed_handle"] > 0.7, report
    assert ratios["directory_over_create_per_send"] > 4, report
