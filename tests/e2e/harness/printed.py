"""What tests print that pass: how long something took, what was counted, the seed. pytest shows only what fails printed."""


def pytest_terminal_summary(terminalreporter):
    """A hook of pytest, where a conftest imports it."""
    said = [(report.nodeid, report.capstdout.strip()) for report in terminalreporter.stats.get("passed", [])
            if report.when == "call" and report.capstdout.strip()]
    if not said:
        return
    terminalreporter.section("what passed tests measured")
    for name, text in said:
        terminalreporter.line(name.split("::", 1)[-1])
        for line in text.splitlines():
            terminalreporter.line(f"    {line}")
