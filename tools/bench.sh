#!/bin/bash
# make bench: training speed of every network on this machine's CPU, beside the ceiling that oneDNN's
# convolutions set and, where python3 can import torch, beside PyTorch in both of its layouts. The programs
# take turns, a process each, so that a slow minute of the machine hits all of them alike.
# Environment: BATCHES ("8 16"), STEPS (9), PASSES (2), NETWORKS, THREADS, PYTHON (python3), DUPLEX (bin/duplex).
set -eu
duplex=${DUPLEX:-bin/duplex}
python=${PYTHON:-python3}
batches=${BATCHES:-8 16}
steps=${STEPS:-9}
passes=${PASSES:-2}
threads=${THREADS:-$(nproc)}
networks=${NETWORKS:-squeezenet googlenet resnet34 vgg16e alexnet}
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT

torch=no
if "$python" -c 'import torch' 2>/dev/null; then
  torch=yes
  "$python" -c 'import torch; print("PyTorch", torch.__version__)'
else
  echo "PyTorch: $python cannot import torch; its columns stay empty"
fi
echo "$("$duplex" --version 2>/dev/null || true)$threads threads, $steps steps a process, $passes passes; medians of the passes' medians"
echo

for batch in $batches; do
  for net in $networks; do
    for pass in $(seq "$passes"); do
      ceiling=0; [ "$pass" = 1 ] && ceiling=0.05
      printf 'bench: %s, batch %s, pass %s of %s\n' "$net" "$batch" "$pass" "$passes" >&2
      "$duplex" bench --net "$net" --batch "$batch" --steps "$steps" --threads "$threads" --ceiling "$ceiling" --row |
        sed 's/^/duplex\t/' >> "$rows"
      [ "$torch" = yes ] || continue
      for layout in default channels_last; do
        OPENBLAS_NUM_THREADS=$threads "$python" "$(dirname "$0")/bench_torch.py" \
          "$net" "$batch" "$layout" "$steps" "$threads" | sed 's/^/torch\t/' >> "$rows"
      done
    done
  done
done

awk -F'\t' -v batches="$batches" -v networks="$networks" '
  function median(list,   n, values, i, j, t) {
    n = split(list, values, " ")
    if (n == 0) return 0
    for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++)
      if (values[j] + 0 < values[i] + 0) { t = values[i]; values[i] = values[j]; values[j] = t }
    return n % 2 ? values[(n + 1) / 2] : (values[n / 2] + values[n / 2 + 1]) / 2
  }
  function cell(value, format) { return value > 0 ? sprintf(format, value) : "-" }
  $1 == "duplex" {
    key = $2 "," $3; ours[key] = ours[key] " " $4; flops[key] = flops[key] " " $7; step[key] = step[key] " " $8
    if ($9 > 0) ceiling[key] = $9
    if ($10 > memory[key]) memory[key] = $10
    spread[key] = spread[key] " " $5 " " $6
  }
  $1 == "torch" { key = $2 "," $3; theirs[key, $4] = theirs[key, $4] " " $5; if ($8 > peak[key, $4]) peak[key, $4] = $8 }
  END {
    printf "%-10s %5s  %19s %8s %8s %6s  %8s %8s %6s %10s\n", "network", "batch", "pictures/s (range)", "GFLOP/s",
      "ceiling", "MiB", "torch", "torch cl", "ratio", "torch MiB"
    nb = split(batches, b, " "); nn = split(networks, n, " ")
    for (i = 1; i <= nb; i++) for (j = 1; j <= nn; j++) {
      key = n[j] "," b[i]; mine = median(ours[key]); s = median(step[key])
      m = split(spread[key], edges, " "); low = high = edges[1]
      for (k = 2; k <= m; k++) { if (edges[k] + 0 < low + 0) low = edges[k]; if (edges[k] + 0 > high + 0) high = edges[k] }
      plain = median(theirs[key, "default"]); last = median(theirs[key, "channels_last"])
      best = plain > last ? plain : last; layout = plain > last ? "default" : "channels_last"
      printf "%-10s %5s  %6.2f (%5.2f-%5.2f) %8.1f %8s %6.0f  %8s %8s %6s %10s\n", n[j], b[i], mine, low, high,
        median(flops[key]), cell(s > 0 ? 100 * ceiling[key] / s : 0, "%.1f%%"), memory[key] / 1048576,
        cell(plain, "%.2f"), cell(last, "%.2f"), cell(best > 0 ? mine / best : 0, "%.2f"),
        cell(peak[key, layout] / 1048576, "%.0f")
    }
    print ""
    print "ceiling: seconds of the convolutions and linear layers when each runs alone (oneDNN, its best layouts), over"
    print "the seconds of the whole step. ratio: pictures/s over those of the faster of PyTorch'"'"'s layouts (torch MiB is its memory)."
  }' "$rows"
