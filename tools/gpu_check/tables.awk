# Prints the page's tables from rows.txt (tools/gpu_check/timing.sh says what is in a line). Variables: first, the batch
# that has targets; batches, networks, precisions (all, in the page's order); wanted, the precisions to print; torch,
# empty if there is none.
BEGIN { FS = "\t" }
{ key = $2 SUBSEP $3 SUBSEP $4 SUBSEP ($1 == "duplex" ? "duplex" : $5)
  speed[key] = $6; low[key] = $7; high[key] = $8; allocated[key] = $9; reserved[key] = $10; run[key] = $12
  if ($1 == "duplex") { layout[key] = $5; remark[key] = $13 }
}

function number(value) { return value > 0 ? sprintf("%.0f", value) : "-" }
function mebibytes(value) { return number(value / 1048576) }

# Sets the keys of the figures of a network, precision and batch, and PyTorch's best eager one.
function look(net, precision, batch,   prefix) {
  prefix = net SUBSEP precision SUBSEP batch SUBSEP
  ours = prefix "duplex"; eager = prefix "eager"; last = prefix "channels_last"; compiled = prefix "compile"
  graphs = prefix "graphs"
  best = speed[last] > speed[eager] ? last : eager
  alone = !(speed[eager] > 0 && speed[last] > 0)
}
function ratio(of) { return speed[ours] > 0 && speed[of] > 0 ? speed[ours] / speed[of] : 0 }
function ratio_text(of, mark) {
  return ratio(of) ? sprintf("%.2f", ratio(of)) mark (run[of] != run[ours] ? "*" : "") : "-"
}
function target(of, least, mark) {
  return ratio(of) ? ratio_text(of, mark) (ratio(of) >= least ? " yes" : " **no**") : "-"
}
# Compares our memory with that of one of PyTorch's ways.
function memory_target(of) {
  if (!(allocated[ours] > 0 && allocated[of] > 0)) return "-"
  return sprintf("%.2f", allocated[ours] / allocated[of]) (allocated[ours] <= allocated[of] ? " yes" : " **no**")
}

function layout_text() {
  return speed[ours] > 0 ? layout[ours] (remark[ours] != "" ? " (" remark[ours] ")" : "") : "-"
}

function speeds_of(net, precision, batch) {
  total++; missing += !(speed[ours] > 0)
  if (torch != "") { total += 2; missing += !(speed[best] > 0); missing += !(speed[compiled] > 0) }
  printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", net, batch, precision,
    (speed[ours] > 0 ? sprintf("%.0f (%.0f..%.0f)", speed[ours], low[ours], high[ours]) : "-"),
    layout_text(), number(speed[eager]), number(speed[last]),
    ratio_text(best, alone ? "†" : ""), number(speed[compiled]), ratio_text(compiled, "")
}
function memory_of(net, precision, batch) {
  printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", net, batch, precision, mebibytes(allocated[ours]),
    mebibytes(allocated[eager]), mebibytes(reserved[eager]), mebibytes(allocated[last]), mebibytes(reserved[last]),
    mebibytes(allocated[compiled]), mebibytes(reserved[compiled])
}
function targets_of(net, precision, batch) {
  if (batch != first) return
  printf "| %s | %s | %s | %s | %s | %s |\n", net, precision, target(best, 1.1, alone ? "†" : ""), target(compiled, 1.0, ""),
    memory_target(best), memory_target(compiled)
}

function graphs_of(net, precision, batch) {
  if (!(speed[graphs] > 0)) return
  if (!graph_rows++) {
    print "\n## CUDA graphs\n"
    print "Images a second at small batches, as above, and where forward and backward are one call each (`--cuda-graphs`).\n"
    print "| network | batch | precision | duplex | with graphs | ratio |"
    print "|---|---:|---|---:|---:|---:|"
  }
  printf "| %s | %s | %s | %s | %s (%.0f..%.0f) | %s |\n", net, batch, precision, number(speed[ours]), number(speed[graphs]),
    low[graphs], high[graphs], (speed[ours] > 0 ? sprintf("%.2f", speed[graphs] / speed[ours]) : "-")
}

function each(table,   b, n, p, i, j, k) {
  n = split(networks, net, " "); p = split(precisions, precision, " "); b = split(batches, batch, " ")
  for (k = 1; k <= b; k++) for (j = 1; j <= p; j++) for (i = 1; i <= n; i++) {
    if (index(" " wanted " ", " " precision[j] " ") == 0) continue
    look(net[i], precision[j], batch[k])
    if (table == "speed") speeds_of(net[i], precision[j], batch[k])
    if (table == "memory") memory_of(net[i], precision[j], batch[k])
    if (table == "graphs") graphs_of(net[i], precision[j], batch[k])
    if (table == "targets") targets_of(net[i], precision[j], batch[k])
  }
}

END {
  print "\n| network | batch | precision | duplex | layout | eager | channels_last | ratio | compile | ratio |"
  print "|---|---:|---|---:|---|---:|---:|---:|---:|---:|"
  each("speed")
  if (missing) print "\n" missing " of " total " figures are not measured" \
    (torch == "" ? "" : " (duplex, the eager that is compared with, torch.compile)") "; RESUME=1 goes on with them."
  print "\n## Targets at batch " first "\n"
  print "At least 1.1 times eager's speed and 1.0 times torch.compile's; memory (duplex over PyTorch's allocated, at most 1) beside the"
  print "faster eager one, and beside torch.compile.\n"
  print "| network | precision | speed: eager >= 1.1 | compile >= 1.0 | memory: eager <= 1 | compile <= 1 |"
  print "|---|---|---:|---:|---:|---:|"
  each("targets")
  each("graphs")
  print "\n## Memory of the GPU\n"
  print "MiB. duplex: what it has allocated on the GPU while it trains, in every step: weights, gradients, momentum, activations,"
  print "images, workspaces."
  print "PyTorch: max_memory_allocated, then max_memory_reserved (what its allocator keeps from CUDA), over the steps"
  print "that count and two before them, once cudnn.benchmark and torch.compile have done their trials and the cache was emptied."
  print "CUDA's own context is in none of them.\n"
  print "| network | batch | precision | duplex | eager | reserved | channels_last | reserved | compile | reserved |"
  print "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|"
  each("memory")
}
