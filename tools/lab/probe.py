"""Measures how fast this machine is during a run, since others that share it slow it down now and then."""
import hashlib
import os
import statistics
import threading
import time

PIECE = bytes(1 << 20)


def stolen_seconds():
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


class Probe:
    """While it is entered, a thread does the same small piece of work five times a second. Then `seconds` is the median
    processor time of a piece, and `stolen` is how many of all cores a hypervisor gave to others, in the mean."""

    def __init__(self):
        self.seconds = self.stolen = 0.0
        self._values, self._over, self._began = [], threading.Event(), None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._over.wait(0.2):
            before = time.thread_time()
            bytearray(PIECE)
            hashlib.sha256(PIECE[:1 << 16]).digest()
            self._values.append(time.thread_time() - before)

    def __enter__(self):
        self._began = time.monotonic(), stolen_seconds()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        began, stolen = self._began
        self.stolen = (stolen_seconds() - stolen) / (time.monotonic() - began)
        if self._values:
            self.seconds = statistics.median(self._values)
