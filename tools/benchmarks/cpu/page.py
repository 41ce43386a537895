"""The page of results has a section for each major version of oneDNN; a run replaces the section of its own version."""
import re
import textwrap

from turns import CONFIGURATIONS, PRECISIONS, PROBE_STEPS

HEAD = "# Training speed on a CPU"
INTRO = """\
`make bench ONLY=cpu` writes this page: a section for each major version of oneDNN that Duplex was built with here. A run
replaces its own section and leaves the other's. So a run on Debian 12 (oneDNN 2.6.3) and one on Debian 13 (3.7.2), on
the same processor, stand side by side.

One training step is: zero the gradients, forward, cross-entropy, backward, SGD with momentum. Images are random,
224x224 (AlexNet 227x227), of 1000 classes. The programs take turns, a process each, so that a slow minute of the
machine hits all of them alike. A rate is the median over the passes of the passes' medians; the range goes from their
least low quartile to their greatest high one."""
NOTES = """\
- **ratio**: Duplex's images a second over PyTorch's. Duplex computes in float32, so the ratio that counts is the one
  to PyTorch's best float32. Beside its bf16 Duplex still computes in float32.
- **PyTorch's configurations**: its default layout or channels_last (cl), eager or torch.compile in its default mode;
  bf16 is autocast. A probe runs all of them for a few steps with each network and the first batch, and the fastest of
  each precision is then measured in turns with Duplex. SGD is fused where PyTorch has that; the allocator is glibc's.
- **ceiling**: the seconds that the convolutions and linear layers of a step take when each runs alone, in oneDNN's best
  layouts and by its faster algorithm, over the seconds of the whole step. What is left is pooling, normalisation,
  concatenation, dropout, the update, and memory that is cold in a network and warm alone. More than 100% is possible
  where others disturbed the machine while the layers ran alone.
- **GFLOP/s** count the multiplications of the direct algorithm. 3x3 convolutions run by Winograd's where oneDNN has
  it, with a quarter of them, so that figures above the machine's peak are possible.
- **MiB**: the greatest resident memory of the process."""
WINOGRAD = """\
oneDNN 3 has no Winograd convolution for float32 on x86-64 CPUs any more, while oneDNN 2.6.3 has one for AVX-512. VGG16E
and Resnet34, which consist of 3x3 convolutions almost alone, lose the most. PyTorch loses nothing by oneDNN 3, because
it asks for the direct algorithm in either."""
EARLIER = """An earlier run had about half of VGG16E's speed and a third of Resnet34's from it; the two sections tell once both are
here."""


def table(columns, rows):
    """Returns a table as plain text: the first column is aligned to the left, the others to the right."""
    lines = [[str(cell) for cell in row] for row in [columns, *rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "\n".join(
        "    " + "  ".join([line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])])
        for line in lines)


def float32_table(cells):
    rows = []
    for cell in cells:
        rate, theirs = cell.duplex.rate, cell.torch.get("float32")
        gflops = sorted(cell.duplex.gflops)[len(cell.duplex.gflops) // 2]
        rows.append([cell.network, cell.batch, rate.text(), f"{gflops:.1f}", cell.duplex.of_ceiling(), rate.mib()] +
                    ([theirs.text(), CONFIGURATIONS[cell.best["float32"]], theirs.mib(), cell.ratio("float32")]
                     if theirs else ["-"] * 4))
    return table(["network", "batch", "Duplex", "GFLOP/s", "ceiling", "MiB", "PyTorch", "its best", "MiB", "ratio"], rows)


def bf16_table(cells):
    rows = []
    for cell in cells:
        theirs = cell.torch.get("bf16")
        if theirs:
            rows.append([cell.network, cell.batch, cell.duplex.rate.text(), theirs.text(),
                         CONFIGURATIONS[cell.best["bf16"]], theirs.mib(), cell.ratio("bf16")])
    return table(["network", "batch", "Duplex, float32", "PyTorch, bf16", "its best", "MiB", "ratio"], rows)


def probe_table(probes):
    keys = [(precision, configuration) for precision in PRECISIONS for configuration in CONFIGURATIONS]
    names = [("f32 " if precision == "float32" else "bf16 ") + CONFIGURATIONS[configuration].replace("compile", "c.")
             for precision, configuration in keys]
    rows = [[probe.network, probe.batch] + [f"{probe.rates[key]:.2f}" if key in probe.rates else "failed" for key in keys]
            for probe in probes]
    return table(["network", "batch", *names], rows)


def failures(probes):
    """Returns a line for each reason why PyTorch failed, with all the configurations that failed for it."""
    reasons = {}
    for probe in probes:
        for (precision, configuration), why in probe.failures.items():
            reasons.setdefault(why, []).append(f"{probe.network} {precision} {CONFIGURATIONS[configuration]}")
    return "\n".join(prose(f"- failed: {', '.join(which)}: {why}", "  ") for why, which in reasons.items())


def prose(text, indent=""):
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def title(onednn):
    return f"## With oneDNN {onednn}" if onednn else "## Without oneDNN"


def section(onednn, facts, cells, probes):
    """Returns the section of one run. `onednn` is the version that Duplex has; empty if it has none."""
    parts = [title(onednn), "\n".join(prose("- " + fact, "  ") for fact in facts),
             "Float32, images a second:", float32_table(cells)]
    if any("bf16" in cell.torch for cell in cells):
        parts += ["Duplex in float32 beside PyTorch in bf16, images a second:", bf16_table(cells)]
    if probes:
        parts += [f"The probe: PyTorch's configurations, images a second of the fastest of {PROBE_STEPS} steps (c.: compile):",
                  probe_table(probes), failures(probes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def sections_of(text):
    """Returns the sections of a page, by oneDNN's major version."""
    found = {}
    for part in re.split(r"^(?=## )", text, flags=re.M):
        version = re.match(r"## With(?:out)? oneDNN ?(\d*)", part)
        if version:
            found[version.group(1)] = part.rstrip() + "\n"
    return found


def rates_of(part):
    """Returns Duplex's images a second in a section, by network and batch."""
    tables = part.partition("Float32, images a second:")[2].split("\n\n")
    rows = re.findall(r"^    (\w+) +(\d+) +([\d.]+) \(", tables[1] if len(tables) > 1 else "", re.M)
    return {(network, int(batch)): float(rate) for network, batch, rate in rows}


def lost(sections):
    """Returns a table of the part of oneDNN 2's rates that is left with oneDNN 3, where both were measured."""
    rates = [rates_of(sections.get(major, "")) for major in "23"]
    both = [[network, batch, f"{rate:.2f}", f"{rates[1][network, batch]:.2f}", f"{rates[1][network, batch] / rate:.2f}"]
            for (network, batch), rate in rates[0].items() if (network, batch) in rates[1]]
    if not both:
        return EARLIER
    return ("Duplex by the sections above, images a second, and the part of oneDNN 2's rate that is left:\n\n" +
            table(["network", "batch", "oneDNN 2", "oneDNN 3", "left"], both))


def page(old, onednn, own):
    """Returns the page with this run's section in the place of an earlier one's."""
    sections = {**sections_of(old), onednn.split(".")[0]: own}
    parts = [HEAD, INTRO, *(sections[major].rstrip() for major in sorted(sections)), "## What the figures mean", NOTES,
             "## What is lost with oneDNN 3", WINOGRAD, lost(sections)]
    return "\n\n".join(part for part in parts if part) + "\n"
