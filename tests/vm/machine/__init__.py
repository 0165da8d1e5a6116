"""The virtual machine, seen from the host: its kernel, its first file system, and the emulator that runs it."""
