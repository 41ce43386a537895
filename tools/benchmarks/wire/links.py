"""The speed of one connection between two hosts, on a shaped link and on loopback, beside iperf3's."""
from lab.machine import Iperf3, Lab, Loopback, iperf3_command, transport
from page import Range, at_least, at_most, commands, count, digits, section, table

NETWORKS = ("squeezenet", "googlenet", "resnet34", "vgg16e")


def slower(report, what, *directions):
    return max(report[what][direction] for direction in directions)


def transfers_of(net, settings):
    """Returns the number of transfers of each kind in a process: one for VGG16E, with a hundred times SqueezeNet's
    bytes."""
    return 1 if net == "vgg16e" else settings.transfers


def shaped(settings):
    rows, verdicts, told = [], [], {}
    for congestion in settings.congestion:
        rates, reports = {"alone": [], "both": []}, {net: [] for net in NETWORKS}
        with Lab(2, settings.mbit, congestion) as lab:
            for turn in range(settings.repeats):
                if iperf3_command():
                    with Iperf3(lab, 1, congestion) as iperf3:
                        rates["alone"].append(iperf3.gigabits())
                        rates["both"].append(iperf3.gigabits(both=True))
                for net in NETWORKS:
                    if net != "vgg16e" or turn < 2:
                        settings.say(f"link: {congestion}, turn {turn + 1} of {settings.repeats}, {net}")
                        reports[net].append(transport(lab, net, congestion, transfers_of(net, settings)))
            told = {**lab.commands, **told}
        for way, directions in (("alone", ("down", "up")), ("both", ("down_both", "up_both"))):
            rate = Range(rates[way]) if rates[way] else None
            for net in NETWORKS:
                times = Range(slower(report, "t_comm_s", *directions) for report in reports[net])
                raw = Range(slower(report, "link_s", *directions) for report in reports[net])
                size, used = reports[net][0]["bytes"], reports[net][0]["congestion"]
                ratio = times.median / (size * 8e-9 / rate.median) if rate else None
                verdict = at_most(ratio, 1.02) if rate else ""
                verdicts.append(verdict)
                rows.append((net, digits(size * 1e-6), "one way" if way == "alone" else "both at once", used,
                             rate.text() if rate else "-", digits(size * 8e-9 / rate.median) if rate else "-",
                             times.text(), f"{ratio:.3f}" if rate else "-", "<= 1.02", verdict or "not measured",
                             f"{times.median / raw.median:.3f}"))
    return section(
        f"1. t_comm over a link of {settings.mbit:g} Mbit/s",
        "All weights of a network, 1000 classes, between two hosts (`duplex transport`), beside the time that as many "
        "bytes take at the payload rate that iperf3 receives in the same lab, in turns with it. One way: the slower "
        "of the two directions, each alone; both at once: the slower when the other carries the same. The last column "
        "is the ratio to as many bytes without frames through the same connection. The link's token bucket lets "
        "128 kB pass at once, 2.5% of SqueezeNet's bytes.",
        commands(told),
        table(("network", "MB", "transfer", "congestion", "iperf3 Gbit/s", "by its rate s", "t_comm s", "ratio",
               "target", "verdict", "to raw"), rows), count(verdicts))


def loopback(settings):
    place, rows, verdicts = Loopback(), [], []
    for congestion in settings.loopback_congestion:
        rates, reports = [], {net: [] for net in ("resnet34", "vgg16e")}
        turns = 4 * settings.repeats  # Turns are short, since others on the machine share its memory's bandwidth.
        for turn in range(turns):
            settings.say(f"loopback: {congestion}, turn {turn + 1} of {turns}")
            if iperf3_command():
                with Iperf3(place, 0, congestion, settings.port) as iperf3:
                    rates.append(iperf3.gigabits())
            for net, found in reports.items():
                ports = (settings.port + 1, settings.port + 2)
                found.append(transport(place, net, congestion, transfers_of(net, settings), ports))
        rate = Range(rates) if rates else None
        for net, found in reports.items():
            size = found[0]["bytes"] * 8e-9
            ours = Range(size / slower(report, "t_comm_s", "down", "up") for report in found)
            raw = Range(size / slower(report, "link_s", "down", "up") for report in found)
            ratio = ours.median / rate.median if rate else None
            verdict = at_least(ratio, 0.8) if rate else ""
            verdicts.append(verdict)
            rows.append((net, found[0]["congestion"], rate.text() if rate else "-", ours.text(),
                         f"{ratio:.2f}" if rate else "-", ">= 0.80", verdict or "not measured", raw.text()))
    return section(
        "2. One connection over loopback",
        "Gbit/s of payload; iperf3 with one stream, `duplex transport` in the slower of its two directions, in turns. "
        "raw: as many bytes without frames through the connection that transport measures. iperf3 sends the same 128 KB "
        "again and again, out of the cache; a network's weights come from memory, whose bandwidth others share.",
        commands(place.commands),
        table(("network", "congestion", "iperf3", "duplex", "ratio", "target", "verdict", "raw"), rows),
        count(verdicts))
