"""The parts of the page: medians with their range, tables, verdicts."""
import statistics
import textwrap


class Range:
    """The median, the least and the greatest of some values."""

    def __init__(self, values):
        self.values = list(values)
        self.median = statistics.median(self.values)
        self.low, self.high = min(self.values), max(self.values)

    def __mul__(self, factor):
        return Range(value * factor for value in self.values)

    def text(self):
        return f"{digits(self.median)} ({digits(self.low)}..{digits(self.high)})"


def digits(value):
    """Returns the value with four significant digits and without an exponent."""
    decimals = 0 if value >= 1000 else 1 if value >= 100 else 2 if value >= 10 else 3 if value >= 1 else 4
    return f"{value:.{decimals}f}"


def missed_by(part):
    return f"missed by {100 * part:.1f}%" if part >= 0.0005 else "missed by less than 0.1%"


def at_most(value, target):
    """Returns the verdict: "met", or by how much the target is missed."""
    return "met" if value <= target else missed_by(value / target - 1)


def at_least(value, target):
    return "met" if value >= target else missed_by(1 - value / target)


def within(value, part):
    return "met" if abs(value - 1) <= part else f"missed: off by {100 * abs(value - 1):.1f}%"


def table(columns, rows):
    """Returns a table in Markdown; the first column is text, the others are figures."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "|".join(["---"] + ["---:"] * (len(columns) - 1)) + "|"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def commands(told):
    """Returns the first command of each sort; others differ in network, congestion control and the like."""
    return "\n".join("    " + line for line in told.values())


def prose(text, indent=""):
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def section(title, *parts):
    """Returns a section of prose, commands and tables."""
    return "\n\n".join([f"## {title}", *(part if part[0] in "| " else prose(part) for part in parts)]) + "\n"


def count(verdicts):
    """Returns the last line of a section."""
    judged = [verdict for verdict in verdicts if verdict]
    missed = sum(verdict != "met" for verdict in judged)
    return f"{len(judged) - missed} of {len(judged)} targets met." if judged else "No target here."
