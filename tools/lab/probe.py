"""How fast this machine is meanwhile: others that share it slow it down now and then."""
import hashlib
import statistics
import threading
import time

PIECE = bytes(1 << 20)


class Probe:
    """While it is entered, a thread does the same small piece of work five times a second. `seconds`: of the processor, for
    a piece, in the median."""

    def __init__(self):
        self.seconds = 0.0
        self._values, self._over = [], threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._over.wait(0.2):
            before = time.thread_time()
            bytearray(PIECE)
            hashlib.sha256(PIECE[:1 << 16]).digest()
            self._values.append(time.thread_time() - before)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        if self._values:
            self.seconds = statistics.median(self._values)
