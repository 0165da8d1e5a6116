"""The guest's kernel: a Debian package that was unpacked by tests/vm/fetch-kernel, and the modules in it."""

import os
import pathlib
import re
import subprocess

from .trouble import Trouble

# depmod and modprobe stand where an ordinary user's PATH does not lead.
ENVIRONMENT = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin", "LC_ALL": "C"}


def run(*words):
    try:
        done = subprocess.run(words, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
    except FileNotFoundError:
        raise Trouble(f"there is no {words[0]} here: run tools/setup vm") from None
    if done.returncode != 0:
        raise Trouble(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


class Kernel:
    """One unpacked kernel package: image, version, and its modules in the order in which they are to be loaded."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        images = sorted(self.root.glob("boot/vmlinuz-*"))
        if not images:
            raise Trouble(f"there is no kernel in {self.root}: run tools/setup vm")
        self.image = images[-1]
        self.version = self.image.name.removeprefix("vmlinuz-")
        self.modules = self.root / "lib" / "modules"

    def index(self):
        """Makes the table of dependencies that modprobe reads, here and in the guest."""
        if not (self.modules / self.version / "modules.dep.bin").exists():
            run("depmod", "-b", str(self.root), self.version)

    def files_for(self, *names):
        """The module files for these modules and what they depend on, each once, dependencies first."""
        self.index()
        found = {}
        for name in names:
            answer = run("modprobe", "-d", str(self.root), "-S", self.version, "--show-depends", name)
            for path in re.findall(r"^insmod (\S+)", answer, re.MULTILINE):
                found[pathlib.Path(path).resolve()] = None
        return list(found)
