# Part of tools/gpu_check.sh: times training, ours and PyTorch's, and our layers (layers.md). Each figure is a line of
# rows.txt: who (duplex; graphs, which is duplex with CUDA graphs; torch), network, precision, batch, layout or way, images
# a second (median, low, high), peak bytes, bytes reserved, mark of what it depends on, number of the run that measured it,
# remark. A run that goes on does not measure figures again.

keep_rows() {
  awk -F'\t' -v ours="$of_ours" -v theirs="$of_theirs" '$11 "" == ($1 == "torch" ? theirs : ours)' "$rows" >"$rows.new"
  mv "$rows.new" "$rows"
  awk -v ours="$of_ours" '/^<!-- layers / { keep = $4 "" == ours } keep' "$layers" >"$layers.new"
  mv "$layers.new" "$layers"
  call=$(($(cut -f 12 "$rows" | sort -n | tail -n 1) + 1))
}

# known WHO NET PRECISION BATCH [WAY] tells whether rows.txt has this figure.
known() { cut -f 1-$# "$rows" | grep -qxF "$(printf '%s\t' "$@" | sed 's/\t$//')"; }

# put adds rows to rows.txt as a process prints them.
put() {
  local row
  while IFS= read -r row; do
    printf '%s\n' "$row" >>"$rows"
    page
  done
  return 0
}

# attempt WHAT SECONDS READER COMMAND... runs a command whose output READER takes, a function. Its errors go to bench.log, and
# to the page if it failed by itself. Like capped(), it is for the first shell alone.
attempt() {
  local what=$1 most status
  most=$(cap "$2")
  set -o pipefail
  timeout -k 5 "$most" "${@:4}" 2>"$logs/said.txt" | "$3" &
  wait $!
  status=$?
  set +o pipefail
  {
    echo "== $what"
    grep -v '^ *$' "$logs/said.txt"
    [ $status = 0 ] || echo "exit code $status$(cut_off $status && echo ", stopped after $most s")"
  } >"$logs/run.txt"
  cat "$logs/run.txt" >>"$logs/bench.log"
  [ $status = 0 ] && return
  if cut_off $status && [ "$most" -lt "$2" ] && [ "$most" -lt "$longest" ]; then return $status; fi  # No time was left for more.
  { head -n 1 "$logs/run.txt"; tail -n +2 "$logs/run.txt" | tail -n 8 | cut -c 1-300; } >>"$wrong"
  return $status
}

# file_of NET prints what `--net` takes: the path of the network's file, if it has one, else its name.
file_of() { if [ -e "models/$1.net" ]; then echo "models/$1.net"; else echo "$1"; fi; }

# ours_in LAYOUT REMARK NET PRECISION BATCH times Duplex in one layout.
ours_in() {
  local most=60 layout=$1 remark=$2 net=$3 precision=$4
  [ "$1" = measured ] && most=90  # It makes three networks, with all their engines.
  attempt "$3 $4 $5 duplex, layout $1" $most put_ours "$duplex" bench --net "$(file_of "$3")" --precision "$4" --batch "$5" \
    --layout "$1" --steps "$steps" --device cuda --row
}
put_ours() {
  awk -F'\t' -v OFS='\t' -v net="$net" -v precision="$precision" -v layout="$layout" -v rest="$of_ours	$call	$remark" '{
    split($10, word, "[ :]")
    print "duplex", net, precision, $2, word[2] != "" ? word[2] : toupper(layout), $3, $4, $5, $9, 0, rest }' | put
}

# ours NET PRECISION BATCH LAYOUT times Duplex. If the layout has no engine, or there is no time to measure both, it
# takes one of them alone, so that the row is not lost.
ours() {
  local status
  known duplex "$1" "$2" "$3" && return
  in_time 15 || return
  say "$1, $2, batch $3: duplex"
  ours_in "$4" '' "${@:1:3}"
  status=$?
  if [ $status = 0 ] || [ "$4" = nchw ] || ! in_time 15; then return $status; fi
  if ! cut_off $status; then
    ours_in nchw "layout $4 failed" "${@:1:3}"
  elif [ "$4" = measured ]; then
    ours_in nhwc "no time to measure both" "${@:1:3}"
  fi
}

# theirs NET PRECISION BATCH:WAY... times PyTorch, in one process, where rows.txt has no figure yet.
theirs() {
  local net=$1 precision=$2 cell most=0 cells=()
  [ "$torch" ] || return 0
  shift 2
  for cell; do
    known torch "$net" "$precision" "${cell%:*}" "${cell#*:}" && continue
    cells+=("$cell")
    most=$((most + $([ "${cell#*:}" = compile ] && echo 100 || echo 45)))
  done
  [ ${#cells[@]} = 0 ] && return
  in_time "$([ "${cells[0]#*:}" = compile ] && echo 45 || echo 20)" || return 0
  say "$net, $precision: PyTorch, ${cells[*]}"
  attempt "$net $precision ${cells[*]} PyTorch" $most put_theirs "$python" -W ignore tools/benchmarks/gpu_torch_step.py "$net" \
    "$precision" "$steps" "${cells[@]}"
}
put_theirs() { sed -u "s/^/torch\t/; s/\$/\t$of_theirs\t$call\t/" | put; }

# layout_of NET PRECISION and way_of NET PRECISION print the layout and the way that were faster at the first batch.
layout_of() {
  awk -F'\t' -v n="$1" -v p="$2" -v b="$first" '$1 == "duplex" && $2 == n && $3 == p && $4 == b { print tolower($5) }' "$rows"
}
way_of() {
  awk -F'\t' -v n="$1" -v p="$2" -v b="$first" '
    $1 == "torch" && $2 == n && $3 == p && $4 == b && $5 != "compile" && $6 > best { best = $6; way = $5 }
    END { print way }' "$rows"
}

# each COMMAND runs COMMAND NET PRECISION for all networks and precisions.
each() {
  local net precision
  for precision in $precisions; do
    for net in $networks; do "$1" "$net" "$precision"; done
  done
}

at_first() {
  ours "$1" "$2" "$first" measured
  theirs "$1" "$2" "$first:eager" "$first:channels_last"
}

# When torch.compile has failed twice and never succeeded, it does not work here, and no more time is spent on it.
failures_of_compile=0
compiled() {
  local batch cells=()
  for batch in $compiled_batches; do cells+=("$batch:compile"); done
  [ $failures_of_compile -lt 2 ] || grep -q '	compile	' "$rows" || return
  theirs "$1" "$2" "${cells[@]}" || failures_of_compile=$((failures_of_compile + 1))
}

at_others() {
  local batch layout way cells=()
  layout=$(layout_of "$1" "$2") way=$(way_of "$1" "$2")
  for batch in ${batches#"$first"}; do
    ours "$1" "$2" "$batch" "${layout:-measured}"
    cells+=("$batch:${way:-channels_last}")
  done
  theirs "$1" "$2" "${cells[@]}"
}

# with_graphs NET PRECISION times Duplex with CUDA graphs at small batches, where it may be launches that take the time.
with_graphs() {
  local batch layout net=$1 precision=$2
  layout=$(layout_of "$1" "$2")
  [ "$layout" ] || return 0
  for batch in ${batches#"$first"}; do
    [ "$batch" -le 32 ] && ! known graphs "$1" "$2" "$batch" && in_time 15 || continue
    say "$1, $2, batch $batch: duplex with CUDA graphs"
    attempt "$1 $2 $batch duplex, CUDA graphs" 60 put_graphs "$duplex" bench --net "$(file_of "$1")" --precision "$2" \
      --batch "$batch" --layout "$layout" --cuda-graphs --steps "$steps" --device cuda --row
    if grep -q 'without a CUDA graph' "$logs/said.txt"; then
      { echo "== $1 $2 $batch duplex, CUDA graphs"; grep 'without a CUDA graph' "$logs/said.txt" | cut -c 1-300; } >>"$wrong"
      sed -i "/^graphs\t$1\t$2\t$batch\t/s/\tgraphs\t/\tnone\t/" "$rows"
    fi
  done
}
put_graphs() {
  awk -F'\t' -v OFS='\t' -v net="$net" -v precision="$precision" -v rest="$of_ours	$call	" '{
    print "graphs", net, precision, $2, "graphs", $3, $4, $5, $9, 0, rest }' | put
}

# where_the_time_goes times the layers of the networks at the first batch, in the first of the precisions.
where_the_time_goes() {
  local net precision=${precisions%% *} layout mark
  for net in $networks; do
    layout=$(layout_of "$net" "$precision")
    mark="<!-- layers $net $of_ours $precision $first -->"
    grep -qx -e "$mark" "$layers" && continue
    [ "$layout" ] && in_time 15 || continue
    say "$net, $precision: layers"
    attempt "$net $precision layers" 30 keep_table "$duplex" bench --net "$(file_of "$net")" --precision "$precision" \
      --batch "$first" --layout "$layout" --steps 10 --device cuda --layers || continue
    printf '%s\n' "$mark" "" '```' "$(cat "$logs/table.txt")" '```' >>"$layers"
  done
}
keep_table() { cat >"$logs/table.txt"; }

time_all() {
  each at_first
  where_the_time_goes
  compiled_batches=$first
  each compiled
  each at_others
  each with_graphs
  compiled_batches=${batches#"$first"}
  each compiled
}
