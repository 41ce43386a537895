"""The PyTorch to compare with is the newest that pip offers, in a virtual environment of its own, or an installed
one."""
import os
import subprocess
import sys

from lab.machine import Failed, run

MINUTES = 30  # Limit for an installation.
FACTS = r"""
import re, torch
from importlib import metadata
shown = torch.__config__.show()
def found(pattern):
    match = re.search(pattern, shown)
    return match.group(1) if match else "unknown"
print(torch.__version__, metadata.version("torch").split("+")[0], found(r"MKL-DNN v([\d.]+)"), found(r"BLAS_INFO=(\w+)"),
      found(r"CPU capability usage: (\w+)"), sep="\n")
"""


class Peer:
    """A Python that can import torch."""

    def __init__(self, python):
        self.python = python
        lines = run([python, "-c", FACTS], limit=120).split("\n")
        self.version, self.release, self.onednn, self.blas, self.capability = lines[:5]
        self.standing = "pip was not asked for a newer one"

    def text(self):
        return (f"PyTorch {self.version} ({self.standing}), oneDNN {self.onednn}, BLAS {self.blas}, "
                f"CPU capability {self.capability}")


def peer_of(*pythons):
    """Returns the first of these that can import torch, or None if none can."""
    for python in pythons:
        try:
            return Peer(python)
        except (Failed, OSError):
            continue
    return None


def attempt(command, limit, **options):
    """Returns exit code, output and errors of a command, which has failed if it takes longer than `limit` seconds."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=limit, check=False, **options)
        return done.returncode, done.stdout.strip(), done.stderr.strip()
    except subprocess.TimeoutExpired:
        return 124, "", f"it took more than {limit} s"
    except OSError as error:
        return 127, "", str(error)


def reason(output, errors):
    """Returns the first line that begins with "error", or else the last line."""
    lines = (output + "\n" + errors).strip().splitlines() or ["no reason given"]
    return next((line for line in lines if line.lower().startswith("error")), lines[-1])[:200]


class Environment:
    """A virtual environment in `folder`, for PyTorch alone."""

    def __init__(self, folder):
        self.folder = folder
        self.python = os.path.join(folder, "bin", "python")

    def make(self):
        """Makes it, unless it is there and its Python still runs. Returns None, or the reason why there is none."""
        ours = os.path.exists(os.path.join(self.folder, "pyvenv.cfg"))
        if not ours and os.path.isdir(self.folder) and os.listdir(self.folder):
            return f"{self.folder} is no virtual environment, so nothing is installed there"
        if ours and attempt([self.python, "-m", "pip", "--version"], 60)[0] == 0:
            return None
        code, *output = attempt([sys.executable, "-m", "venv", "--clear", self.folder], 120)
        return None if code == 0 else f"no virtual environment ({reason(*output)}); Debian's package is python3-venv"

    def pip(self, *arguments, limit):
        return attempt([self.python, "-m", "pip", "--disable-pip-version-check", *arguments], limit)

    def offered(self):
        """Returns the newest version that pip offers this Python and None, or None and the reason why there is none."""
        code, *output = self.pip("index", "versions", "torch", "--retries", "1", "--timeout", "15", limit=90)
        name, _, version = next((line for line in output[0].splitlines() if line.startswith("torch (")), "").partition("(")
        return (version.rstrip(")"), None) if code == 0 and name else (None, reason(*output))

    def install(self, version):
        """Installs PyTorch, and numpy, since PyTorch warns without it. Returns None, or the reason why that failed."""
        code, *output = self.pip("install", "--quiet", "--no-cache-dir", "--upgrade", f"torch=={version}", "numpy",
                                limit=60 * MINUTES)
        return None if code == 0 else reason(*output)


def newest(folder, say):
    """Brings PyTorch in this environment up to what pip offers. Returns the peer, or None if there is none."""
    environment = Environment(folder)
    problem = environment.make()
    if problem:
        say(f"PyTorch: {problem}")
        return None
    offered, problem = environment.offered()
    peer = peer_of(environment.python)
    if offered is None:
        say(f"PyTorch: pip offers none, or is cut off from its index ({problem})")
        standing = "pip could not be asked for a newer one"
    else:
        say(f"PyTorch: pip offers {offered}; {folder} has {peer.release if peer else 'none'}")
        standing = f"pip offers {offered}"
        if peer is None or peer.release != offered.split("+")[0]:
            say(f"PyTorch: installing {offered} in {folder}: gigabytes, once (TORCH_VENV= goes without)")
            problem = environment.install(offered)
            peer = peer_of(environment.python)
            if problem or peer is None:
                say(f"PyTorch: it could not be installed: {problem or 'it cannot be imported'}")
        if peer and peer.release == offered.split("+")[0]:
            standing = "the newest that pip offers"
    if peer:
        peer.standing = standing
    return peer


def find(say):
    """Returns the peer, or None; `say` tells the user which one it is, and why.

    Environment: PYTHON (a Python with torch, which is then taken), TORCH_VENV (folder to install the newest in; empty:
    do not install).
    """
    if os.environ.get("PYTHON"):
        peer = peer_of(os.environ["PYTHON"])
        if peer is None:
            say(f"PyTorch: {os.environ['PYTHON']} cannot import torch; its columns stay empty")
    else:
        # Each version of Python has its own folder, since several systems may share a checkout.
        folder = os.environ.get("TORCH_VENV", f".deps/torch-python{sys.version_info[0]}.{sys.version_info[1]}")
        peer = newest(folder, say) if folder else None
        if peer is None:
            peer = peer_of("python3", "/usr/bin/python3")
        if peer is None:
            say("PyTorch: python3 cannot import torch either; its columns stay empty")
    if peer:
        say(f"{peer.python}: {peer.text()}")
    return peer
