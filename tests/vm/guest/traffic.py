"""The program directory_traffic between two rxe devices."""

from harness.directory import Traffic

# Between two rounds: an emulated processor must have time for the rest.
PAUSE_US = "20000"


class RxeTraffic(Traffic):
    """rxe0 has a directory with a handle for each of `addresses`, at which rxe1 listens."""

    def __init__(self, kernel, addresses, patience=20):
        self._devices = iter(("rxe1", "rxe0"))
        super().__init__(kernel, kernel, "root", addresses, patience=patience)

    def _start(self, host, env):
        return host.start([*host.build.program("directory_traffic"), PAUSE_US, next(self._devices)], env=env)
