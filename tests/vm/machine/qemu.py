"""One run of the virtual machine: boots, runs a command in the guest, and is over, whatever happens."""

import collections
import os
import pathlib
import shlex
import subprocess
import threading

from .trouble import Trouble

GUEST = pathlib.Path(__file__).resolve().parent.parent / "guest"
CONSOLE_TAIL = 60
# With /dev/kvm the guest is there within a few seconds. Where the host is a guest itself it may never be.
KVM_BOOT_SECONDS = 15


def _nothing(_line):
    pass


class Machine:
    """A guest of this kernel whose files are the host's. `out` is the one folder it can write to for good.

    The emulator ends with the process that started it (PR_SET_PDEATHSIG), at the deadline, or when the guest powers off.
    """

    def __init__(self, kernel, initramfs, out, memory_mb=2048, processors=2, accelerator=None):
        self.kernel = kernel
        self.initramfs = initramfs
        self.out = pathlib.Path(out).resolve()
        self.log = self.out / "console.log"
        self.memory_mb = memory_mb
        self.processors = processors
        # Found not to work: remembered until the host boots again.
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        self.no_kvm = initramfs.parent / f"no-kvm-{boot}"
        usable = os.access("/dev/kvm", os.R_OK | os.W_OK) and not self.no_kvm.exists()
        self.accelerator = accelerator or ("kvm" if usable else "tcg")
        self._tail = collections.deque(maxlen=CONSOLE_TAIL)
        self._began = threading.Event()

    def _words(self):
        share = "local,security_model=none,multidevs=remap"
        accelerator = "kvm" if self.accelerator == "kvm" else "tcg,thread=multi"
        return ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-accel", accelerator,
                "-cpu", "max,arch-capabilities=off", "-m", str(self.memory_mb), "-smp", str(self.processors), "-nographic", "-no-reboot",
                "-nodefaults", "-serial", "stdio", "-kernel", str(self.kernel.image), "-initrd", str(self.initramfs),
                "-virtfs", f"{share},path=/,mount_tag=host,readonly=on",
                "-virtfs", f"{share},path={self.out},mount_tag=out", "-append", self._append()]

    def _append(self):
        places = {"guest": GUEST, "modules": self.kernel.modules}
        for place in places.values():
            if " " in str(place):
                raise Trouble(f"the path {place} has a space in it, which the guest's command line cannot have")
        return ("console=ttyS0 panic=-1 quiet mitigations=off "
                + " ".join(f"verbena.{name}={place}" for name, place in places.items()))

    def run(self, command, seconds, say=print):
        """Runs the words in the guest; each line of their output goes to `say`. Returns their exit status."""
        (self.out / "command").write_text(shlex.join(command) + "\n")
        if self.accelerator == "kvm":
            try:
                return self._boot(seconds, min(seconds, KVM_BOOT_SECONDS), say)
            except Trouble:
                if self._began.is_set():
                    raise
            say(f"tests/vm: with /dev/kvm the guest did not come up in {KVM_BOOT_SECONDS} s; emulating instead")
            self.no_kvm.touch()
            self.accelerator = "tcg"
        return self._boot(seconds, seconds, say)

    def _boot(self, seconds, boot_seconds, say):
        self._began.clear()
        self._tail.clear()
        (self.out / "status").unlink(missing_ok=True)
        try:
            child = subprocess.Popen(self._words(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        except FileNotFoundError as missing:
            raise Trouble(f"there is no {missing.filename} here: run tools/setup vm") from None
        ended = []
        timers = [threading.Timer(seconds, lambda: (ended.append(seconds), child.kill())),
                  threading.Timer(boot_seconds, lambda: self._began.is_set() or (ended.append(boot_seconds), child.kill()))]
        try:
            for timer in timers:
                timer.start()
            self._follow(child.stdout, say)
            child.wait()
        finally:
            for timer in timers:
                timer.cancel()
            if child.poll() is None:
                child.kill()
                child.wait()
            child.stdout.close()
        return self._status(ended, child.returncode)

    def _follow(self, stream, say):
        with open(self.log, "w", encoding="utf-8") as log:
            for line in stream:
                line = line.rstrip("\r\n")
                log.write(line + "\n")
                log.flush()
                self._tail.append(line)
                if line == "vm: begin":
                    self._began.set()
                elif line.startswith("vm: end "):
                    say = _nothing
                elif self._began.is_set():
                    say(line)

    def _status(self, ended, returncode):
        try:
            return int((self.out / "status").read_text())
        except (FileNotFoundError, ValueError):
            pass
        why = f"not done after {ended[0]} s" if ended else f"it ended early (the emulator with {returncode})"
        tail = "\n".join(self._tail)
        raise Trouble(f"the virtual machine: {why}\n--- the end of {self.log}\n{tail}\n---")
