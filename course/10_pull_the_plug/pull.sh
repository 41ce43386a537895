#!/bin/bash
# Trains with two workers on this machine, and pulls the plug in the middle.
# Usage: pull.sh DUPLEX FOLDER ONE|ALL ROWS FLAGS...     FLAGS are those of launch, --, and those of dist
# When the first worker's metrics.csv has so many rows, SIGKILL ends the last rank (one), or all of them and launch at
# the same moment (all); then the same command starts again with --resume.
# Prints in one line: how many rows there were then, how many seconds launch took from its start to its end (of all: the
# second one), its exit code, and after how many steps it went on (0: it began anew, or did not start again).
# The run is in FOLDER/run, what the ranks said in FOLDER/log.
set -u
duplex=$1 folder=$2 victims=$3 rows=$4
shift 4
log=$folder/log

# ranks prints the process numbers of this run's ranks, the last one behind the others.
ranks() {
  local each words
  for each in /proc/[0-9]*; do
    words=$( (tr "\0" " " < "$each/cmdline") 2> /dev/null) || continue
    case $words in *" dist "*"--logdir $folder/run"*) echo "$(sed 's/.*--index //; s/ .*//' <<< "$words") ${each#/proc/}" ;; esac
  done | sort -n | awk '{ print $2 }'
}
# trained prints how many rows the first worker has written.
trained() { tail -n +2 "$folder/run/metrics.csv" 2> /dev/null | wc -l; }
now() { date +%s.%N; }

begin=$(now)
"$duplex" launch "$@" --logdir "$folder/run" > "$log" 2>&1 &
launch=$!
found=
while kill -0 $launch 2> /dev/null; do
  has=$(trained)
  [ -n "$found" ] || [ "$has" = 0 ] || found=$(ranks)  # Looking for them takes a moment.
  [ "$has" -lt "$rows" ] || break
  sleep 0.01
done
if [ "$victims" = all ]; then
  kill -STOP $launch $found  # Nobody notices that another one is gone.
  had=$(trained)
  kill -KILL $launch $found
  wait $launch 2> /dev/null
  begin=$(now)
  "$duplex" launch "$@" --resume --logdir "$folder/run" >> "$log" 2>&1
else
  kill -KILL "${found##*$'\n'}"
  had=$(trained)
  wait $launch
fi
code=$?
on=$(sed -n 's/.* goes on after \([0-9]*\) steps.*/\1/p' "$log" | tail -n 1)
echo "$had $(awk -v a="$begin" -v b="$(now)" 'BEGIN { print b - a }') $code ${on:-0}"
