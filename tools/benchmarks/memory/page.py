"""The table and the page of what trainings took, beside what was said."""
import datetime
import os
import platform

from lab.machine import commit, processor

TOLERANCE = 0.05
ALIKE = 1.5  # MiB by which two processes of the program differ in what they hold of it: it is 16.8 to 18.1 in starts of the same file.

HEAD = """\
# Memory of a training

`make bench ONLY=memory` writes this page. It trains each network for {steps} steps on random images, and puts the most
memory that each process had (the kernel's VmHWM, `peak_memory_bytes` of its summary) beside what
`duplex nets NET --memory` says of it. Ranks run on loopback, with a thread each; the optimiser is SGD with momentum; two
workers train together, or two ranks have a part of the network each (owt, and a pipeline of two micro-batches). Of ranks
that do the same the one with the most is here.

- **program**: MiB of the bare program. The forecast measures that in its own process: with its libraries, when it has
  trained a step of a network of some hundred weights and, for a rank, exchanged some over loopback.
- **said**: MiB beyond it, by the forecast. Of these, **at most** are gradients that a synchronous owner has received and
  cannot add yet, as many as its store allows, and the maps of a network that is cut which come and leave; how many there
  are depends on how far workers are apart.
- **took**: MiB beyond the program, by the kernel.
- **error**: what was said over what a run took, less one; "within" where the run took less than was said by no more than
  **at most**. Processes differ by as much as 1.5 MiB in what they touch of the program and of the heap, which is much of
  the few that a server of LeNet takes.

{facts}

"""
NOTES = """
What a GPU took is in [decisions/prediction.md](../decisions/prediction.md#memory-is-forecast-by-the-code-that-allocates-it).
"""


def error(row):
    """Returns how far what was said is from what a run took, as a part of that."""
    took, most = row["took"] - row["program"], row["sum"] - row["program"]
    least = most - row["received"]
    return most / took - 1 if took > most else least / took - 1 if took < least else 0.0


def is_right(row):
    return abs(error(row)) <= max(TOLERANCE, ALIKE / (row["took"] - row["program"]))


def table(rows):
    columns = ["network", "batch", "way", "role", "program", "said", "at most", "took", "error"]
    lines = [columns] + [
        [row["network"], str(row["batch"]), row["way"], row["role"], f"{row['program']:.1f}",
         f"{row['sum'] - row['program']:,.1f}", f"{row['received']:,.1f}" if row["received"] else "",
         f"{row['took'] - row['program']:,.1f}", f"{100 * error(row):+.1f}%" if error(row) else "within"]
        for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    left = {0, 2, 3}
    return "\n".join("    " + "  ".join(cell.ljust(width) if i in left else cell.rjust(width)
                                        for i, (cell, width) in enumerate(zip(line, widths))).rstrip()
                     for line in lines)


def write(path, rows, steps):
    facts = (f"{datetime.date.today().isoformat()}, commit {commit()}; {os.cpu_count()} cores, {processor()}, "
             f"Linux {platform.release()}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD.format(steps=steps, facts=facts) + table(rows) + "\n" + NOTES)
