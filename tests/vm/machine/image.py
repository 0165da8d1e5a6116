"""The guest's first file system: an archive with busybox, tests/vm/guest/init, and the modules init needs to go on.

It is kept beside the kernel under a name that stands for its content, and made again when that changes.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from .trouble import Trouble

INIT = pathlib.Path(__file__).resolve().parent.parent / "guest" / "init"
BUSYBOX = pathlib.Path("/bin/busybox")
# What leads to the host's files. Everything else is loaded from there.
MODULES = ("virtio_pci", "9p", "9pnet_virtio", "overlay")


def initramfs(kernel, folder):
    """The path of the archive for this kernel, made if need be."""
    if not BUSYBOX.exists():
        raise Trouble(f"there is no {BUSYBOX} here: run tools/setup vm")
    modules = kernel.files_for(*MODULES)
    digest = hashlib.sha256()
    for file in (INIT, BUSYBOX, *modules):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    archive = pathlib.Path(folder) / f"initramfs-{kernel.version}-{digest.hexdigest()[:16]}.cpio"
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix="initramfs-") as scratch:
            _fill(pathlib.Path(scratch) / "root", modules)
            made = pathlib.Path(scratch) / "archive"
            _pack(pathlib.Path(scratch) / "root", made)
            os.replace(made, archive)
    return archive


def _fill(root, modules):
    for name in ("bin", "modules", "dev", "proc", "sys", "host", "top", "root"):
        (root / name).mkdir(parents=True)
    shutil.copy2(BUSYBOX, root / "bin" / "busybox")
    shutil.copyfile(INIT, root / "init")
    (root / "init").chmod(0o755)
    for module in modules:
        shutil.copyfile(module, root / "modules" / module.name)
    (root / "modules" / "order").write_text("".join(f"{module.name}\n" for module in modules))


def _pack(root, archive):
    names = "\n".join(sorted(str(path.relative_to(root)) for path in root.rglob("*")))
    with open(archive, "wb") as out:
        try:
            done = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], cwd=root, input=names.encode(),
                                  stdout=out, stderr=subprocess.PIPE, check=False)
        except FileNotFoundError:
            raise Trouble("there is no cpio here: run tools/setup vm") from None
    if done.returncode != 0:
        raise Trouble(f"cpio ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
