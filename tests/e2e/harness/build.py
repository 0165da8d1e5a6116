"""The build tree under test, in a place where every user can read it."""

import os
import pathlib
import shutil
import subprocess

NOBODY = 65534
# In a user namespace of one user there is nobody else to be.
ONE_USER = os.environ.get("VERBENA_E2E_USERS") == "one"
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]


class Build:
    """bin/ and lib/ of a build tree. Where the tree stands in a private folder, a copy for all users is made."""

    def __init__(self, tree, scratch):
        self.tree = pathlib.Path(tree)
        self.source = pathlib.Path(__file__).resolve().parent.parent
        self.sanitizers = os.environ.get("VERBENA_SANITIZE", "")
        if not ONE_USER and not self._readable_by_all():
            copy = pathlib.Path(scratch) / "tree"
            for folder in ("bin", "lib", "e2e"):
                shutil.copytree(self.tree / folder, copy / folder, symlinks=True,
                                ignore=shutil.ignore_patterns("*_test", "*_bench", "*.a"))
            shutil.copytree(self.source / "programs", copy / "programs")
            self.tree = self.source = copy
        self.tool = self.tree / "bin" / "verbena"

    def _readable_by_all(self):
        probe = subprocess.run(AS_NOBODY + ["test", "-x", str(self.tree / "bin" / "verbena"), "-a", "-r",
                                            str(pathlib.Path(__file__))], check=False)
        return probe.returncode == 0

    def program(self, name):
        """A verbs program of programs/, compiled or in Python, as the first words of a command line."""
        script = self.source / "programs" / f"{name}.py"
        if script.exists():
            return ["/usr/bin/python3", str(script)]
        return [str(self.tree / "e2e" / name)]

    def environment(self):
        """For builds with AddressSanitizer: programs that were not made for it do leak."""
        if "address" in self.sanitizers:
            return {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
        return {}
