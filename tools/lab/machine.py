"""The places where things run, this machine or the hosts of tools/netlab.sh, and the programs that are measured
there."""
import atexit
import json
import os
import platform
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

NETLAB = ["bash", "tools/netlab.sh"]
DUPLEX = os.environ.get("DUPLEX", "bin/duplex")
os.environ["NETLAB"] = f"dxl{os.getpid()}"  # Labs of different names do not meet.


class Failed(Exception):
    """A command failed; the text says which one, and the last lines that it printed."""


def work_folder():
    folder = tempfile.mkdtemp(prefix="duplex-lab-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


WORK = work_folder()


def words(command):
    """Returns a command as a reader types it."""
    text = " ".join("python3" if os.path.basename(word).startswith("python") else shlex.quote(word) for word in command)
    return text.replace("bash tools/netlab.sh", "tools/netlab.sh").replace(WORK, "RUN").replace(DUPLEX, "bin/duplex")


def run(command, limit=600, **options):
    """Runs a command and returns its output. Ends the command and raises Failed if it takes longer than `limit`
    seconds."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          **options) as child:
        return wait(child, command, limit)


def wait(child, command, limit=600):
    try:
        out, err = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        stop(child)
        raise Failed(f"{words(command)}: took more than {limit} s") from None
    except BaseException:
        stop(child)
        raise
    if child.returncode != 0:
        last = " | ".join((err or out).strip().splitlines()[-3:])
        raise Failed(f"{words(command)}: exit code {child.returncode}: {last}")
    return out


def stop(child):
    if child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def start(command):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def quiet(command):
    try:
        return run(command).strip()
    except (Failed, OSError):
        return ""


def commit():
    return quiet(["git", "describe", "--always", "--dirty"]) or "unknown"


def processor():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def setting(name):
    """Returns a setting of the kernel, or "" if there is none of that name."""
    try:
        with open("/proc/sys/" + name.replace(".", "/"), encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def busy_seconds():
    """Returns the seconds that all cores together have been busy."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def data_folder():
    """Returns the folder of Fashion-MNIST, and ends the program where there is none."""
    for folder in (os.environ.get("FASHION_MNIST", ""), "/usr/share/datasets/fashion-mnist",
                   ".deps/usr/share/datasets/fashion-mnist"):
        if folder and os.path.isdir(folder):
            return folder
    sys.exit("bench: no Fashion-MNIST: install dataset-fashion-mnist, or name the folder: FASHION_MNIST=DIR")


def nodefile_here(folder, ranks):
    """Writes a nodefile of so many ranks on this machine into a folder, on ports that are free now. Returns its path."""
    sockets = [socket.socket() for _ in range(ranks)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    path = os.path.join(folder, "nodes")
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"127.0.0.1:{each.getsockname()[1]}\n" for each in sockets)
    for each in sockets:
        each.close()
    return path


class Loopback:
    """This machine, as one host that reaches itself."""

    def __init__(self):
        self.commands = {}  # For the page: the first command of each sort.

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def on(self, _host, command):
        return command

    def address(self, _host):
        return "127.0.0.1"

    def told(self, sort, command):
        """Notes a command for the page."""
        self.commands.setdefault(sort, words(command))
        return command


class Lab(Loopback):
    """Hosts with a switch between them; they exist while the object is entered."""

    def __init__(self, hosts, mbit, congestion, buffer=None):
        """`congestion` is the congestion control of all connections there, also of programs that have no flag for it.
        `buffer` is the number of bytes that each of the switch's ports holds; None: tools/netlab.sh's default."""
        super().__init__()
        self.hosts, self.mbit, self.congestion, self.buffer = hosts, mbit, congestion, buffer

    def __enter__(self):
        holds = [f"NETLAB_BUFFER={self.buffer}"] if self.buffer else []
        command = (["env", *holds] if holds else []) + NETLAB + ["up", str(self.hosts), f"{self.mbit:g}mbit"]
        self.told("up " + " ".join(holds), command)
        try:
            run(command)
            for host in range(self.hosts):  # A namespace's default can only be one that the machine allows to everyone.
                run(self.on(host, ["ip", "route", "replace", "10.77.0.0/24", "dev", "eth0", "congctl",
                                   self.congestion]))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        run(NETLAB + ["down", "--kill"])

    def on(self, host, command):
        return NETLAB + ["exec", str(host)] + command

    def address(self, host):
        return f"10.77.0.{host + 1}"


def iperf3_command():
    """Returns the command that runs iperf3, with its environment if make deps unpacked it; None if there is no
    iperf3."""
    found = shutil.which("iperf3")
    if found:
        return ["iperf3"]
    unpacked = os.path.abspath(".deps/usr/bin/iperf3")
    if not os.path.exists(unpacked):
        return None
    libraries = [folder for folder, _, files in os.walk(".deps/usr") if any(".so" in name for name in files)]
    return ["env", "LD_LIBRARY_PATH=" + ":".join(os.path.abspath(folder) for folder in libraries), unpacked]


class Iperf3:
    """Runs an iperf3 server on host `other` of a place, and measures from host 0 to it."""

    def __init__(self, place, other, congestion, port=5311):
        self.place, self.other, self.congestion, self.port = place, other, congestion, str(port)
        self.server = None

    def __enter__(self):
        self.server = start(self.place.on(self.other, iperf3_command() + ["-s", "-p", self.port]))
        return self

    def __exit__(self, *_):
        stop(self.server)

    def gigabits(self, seconds=3, omit=1, both=False):
        """Returns the payload received, in Gbit/s; with `both`, that of the slower of the two directions."""
        command = iperf3_command() + ["-c", self.place.address(self.other), "-p", self.port, "-C", self.congestion,
                                      "-t", str(seconds), "-O", str(omit), "-J"] + (["--bidir"] if both else [])
        self.place.told("iperf3" + " both" * both, self.place.on(0, command))
        for _ in range(20):  # Retry until the server listens, or has ended the test before.
            report = json.loads(run(self.place.on(0, command), 60))
            if "error" not in report:
                break
            time.sleep(0.2)
        else:
            raise Failed(f"{words(command)}: {report['error']}")
        end = report["end"]
        rates = [end["sum_received"]["bits_per_second"]]
        if both:
            rates.append(end["sum_received_bidir_reverse"]["bits_per_second"])
        return min(rates) * 1e-9


def key_file():
    path = os.path.join(WORK, "key")
    if not os.path.exists(path):
        run([DUPLEX, "keygen", path])
    return path


def transport(place, net, congestion, repeats, ports=(7117, 7117), classes=1000, secure="off"):
    """Runs duplex transport between hosts 0 and 1, and returns the report of the server's side. Peers and the thesis
    send plain bytes, so frames are plain unless asked for."""
    key_file()
    logdir = tempfile.mkdtemp(prefix="transport-", dir=WORK)
    addresses = [f"{place.address(host)}:{port}" for host, port in zip((0, 1), ports)]
    commands = []
    for host, role in enumerate(("ps", "worker")):
        commands.append(place.told(role, place.on(host, [
            DUPLEX, "transport", "--net", net, "--classes", str(classes), "--my-role", role, "--my-address", addresses[host],
            "--other-address", addresses[1 - host], "--key", key_file(), "--repeats", str(repeats), "--congestion",
            congestion, "--secure", secure, "--timeout", "120", "--logdir", logdir])))
    children = []
    try:
        for command in commands:
            children.append(start(command))
        for child, command in zip(children, commands):
            wait(child, command)
    finally:
        for child in children:
            stop(child)
    with open(os.path.join(logdir, "transport-ps.json"), encoding="ascii") as file:
        return json.load(file)


def launch(lab, flags, congestion, secure="off"):
    """Runs duplex launch on all hosts of the lab; returns the run's directory, and how many cores were busy
    meanwhile. Frames are plain unless asked for, as in transport()."""
    logdir = tempfile.mkdtemp(prefix="dist-", dir=WORK)
    nodes = os.path.join(WORK, "nodes")
    with open(nodes, "w", encoding="ascii") as file:
        file.write(run(NETLAB + ["nodefile"]))
    sort = "launch, overlap " + ("off" if "off" in flags else "on")
    command = lab.told(sort, [DUPLEX, "launch", "--nodefile", nodes, "--ssh", "tools/lab/netlab-ssh.sh", "--", *flags,
                        "--key", key_file(), "--congestion", congestion, "--secure", secure, "--timeout", "120"])
    began, busy = time.monotonic(), busy_seconds()
    run(command + ["--logdir", logdir])
    return logdir, (busy_seconds() - busy) / (time.monotonic() - began)
