# Part of tools/gpu_check.sh: writes the page, and beside it the logs that a later run needs.

# page writes both with the results so far.
page() {
  {
    heading
    if [ "$unbuilt" ]; then
      printf '%s\n' "" "It does not build; the last lines of the log:" "" '```' "$(tail -n 30 "$unbuilt" | cut -c 1-300)" '```'
    elif [ "$gpu" ] && [ ! "$of_ours" ]; then
      printf '%s\n' "" "It was stopped while it built."
    elif [ "$gpu" ]; then
      printf '%s\n' "" "## Tests on the GPU, against the reference" "" "$(grep -v '^<!-- gpu_check ' "$tests")"
      speeds
    else
      printf '%s\n' "" \
        "Not yet run on a GPU: this machine has none. The device compiles and links; what its kernels do with one element is" \
        "tested on the host (tests/cudnn/gpu_elements_test.cpp), the whole device on a stand-in for CUDA, cuBLAS and cuDNN" \
        "(tests/stand_in.sh), and cuDNN itself says, of an H100 that is described to it, that it has engines for every" \
        "convolution (tests/cudnn)."
    fi
  } >"$page.new"
  mv "$page.new" "$page"
  tar -czf "$state/logs.tar.gz" -C "$logs" . 2>/dev/null
}

heading() {
  printf '%s\n' "# The GPU${gpu:+: ${gpu%%,*}}" "" "What \`tools/gpu_check.sh\` found." "" '```' "$(cat "$machine")" '```'
  [ ! "$warned" ] || printf '%s\n' "" "With WERROR=1 it does not build here: \`$warned\`"
}

speeds() {
  printf '%s\n' "" "## Training speed" "" \
    "Images a second: median (quartiles) of $steps steps; a batch comes from the host while the step before it computes; forward," \
    "loss, backward, SGD with momentum; the host learns the loss of every step. duplex: in the layout that was the faster at" \
    "batch $first, without engines whose bits differ from run to run." \
    "PyTorch ${torch:-is not installed here}: cudnn.benchmark on, and such engines allowed; eager in its default layout (NCHW)" \
    "and in channels_last, torch.compile in channels_last; float32 without TF32, bf16 by autocast." \
    "ratio: duplex to the faster of the two eager ones, and to torch.compile. †: only this one of the eager ones was run (at other" \
    "batches than $first only the one that was the faster there). *: on this machine with these versions, but in another run of" \
    "tools/gpu_check.sh than duplex. -: not measured; it failed, as told below, or had no time."
  awk -v first="$first" -v batches="$batches" -v networks="$networks" -v precisions="float32 tf32 bf16" \
    -v wanted="$precisions" -v torch="$torch" -f tools/gpu_check/tables.awk "$rows"
  awk -F', *' '$1 > 0 { if (!n++ || $1 < low) low = $1; if ($1 > high) high = $1; if ($3 > hot) hot = $3; if ($4 > watt) watt = $4 }
    END { if (n) printf "\nWhile timing, every 5 s: %d to %d MHz (idle moments too), at most %d degrees, %d W.\n", low, high, hot, watt }' \
    "$logs/clocks.csv" 2>/dev/null
  tables_of_layers
  [ -s "$wrong" ] && printf '%s\n' "" "What went wrong while timing:" "" '```' "$(head -c 12000 "$wrong")" '```'
  return 0
}

# tables_of_layers prints layers.md.
tables_of_layers() {
  [ -s "$layers" ] || return
  printf '%s\n' "" "## Where the time goes" "" \
    "\`bench --layers\`, which waits for the GPU after every layer, so that a step takes longer than above." \
    "$(grep -v '^<!-- layers ' "$layers")"
}
