#include "tools/deploy/scripts.h"

#include "tools/deploy/call.h"

namespace duplex::tools {
namespace {

/// Functions of all scripts. Files that they make are the user's alone. $s is no other script's, on
/// no machine that has the same folder. A login shell may have begun a line.
constexpr const char* beginning = R"sh(
d=$1; umask 077; LC_ALL=C; export LC_ALL; h0=$(uname -n); s=$h0-$$; echo;
say() { printf '%s\n' "duplex-deploy $*"; };
no() { say "problem $*"; exit 1; };
)sh";

/// One script at a time changes files. A lock whose process is gone is taken over; of a process on
/// another machine, which has the same folder, nobody knows here. An empty one may just be made, or
/// be gone by now.
constexpr const char* locking = R"sh(
l="$d/.duplex-lock"; i=0; k=0;
until (set -C; echo "$$ $h0" > "$l") 2> /dev/null; do
  o=; w=; { read -r o w < "$l"; } 2> /dev/null;
  if [ "$o" ] && { [ "${w:-$h0}" != "$h0" ] || kill -0 "$o" 2> /dev/null; }; then
    i=$((i + 1)); k=0;
    [ $i -le 60 ] || { [ "${w:-$h0}" = "$h0" ] &&
      no "another deploy works in $d (process $o there): wait for it, or end it"; } ||
      no "a deploy works in $d on $w, which has the same folder: wait for it, or remove $l";
    sleep 1;
  else
    k=$((k + 1)); [ $k -le 5 ] || no "$l cannot be made";
    if [ -z "$o" ] && [ $k -le 2 ]; then sleep 1; else rm -f "$l"; fi;
  fi;
done;
trap 'rm -f "$l"' EXIT;
)sh";

constexpr const char* look = R"sh(
b=$2; m=$3;
[ "$(uname -s)" = Linux ] || no "it runs $(uname -s), and the bundle is for Linux";
u=$(uname -m); [ "$u" = "$m" ] || no "its processor is $u, and the bundle is for $m";
r=$(uname -r); x=${r%%.*}; y=${r#*.}; y=${y%%[!0-9]*};
[ "$x" -gt 3 ] || { [ "$x" -eq 3 ] && [ "${y:-0}" -ge 10 ]; } ||
  no "its Linux is $r, and the bundle needs 3.10 or newer";
for t in tar gzip sha256sum df; do command -v "$t" > /dev/null || no "it has no $t"; done;
only_ours() {
  for f in "$d"/* "$d"/.*; do
    case "${f##*/}" in
      .|..|.duplex-try*|.duplex-new*) ;;
      *) { [ ! -e "$f" ] && [ ! -h "$f" ]; } || [ -e "$d/.duplex-deploy" ] ||
           no "$d has other files in it, and launch --deploy has not made it: name a new folder";;
    esac;
  done;
};
if [ -e "$d" ]; then
  [ -d "$d" ] || no "$d is no folder: name another";
  [ -O "$d" ] || no "$d belongs to another user: name another folder";
  if [ ! -e "$d/.duplex-deploy" ]; then
    only_ours; chmod 700 "$d" || exit 1; only_ours;
  fi;
else
  mkdir -p "$d" || exit 1;
fi;
t="$d/.duplex-try-$s"; { echo try > "$t" && rm -f "$t"; } || { rm -f "$t"; exit 1; };
if [ ! -e "$d/.duplex-deploy" ]; then
  t="$d/.duplex-new-$s";
  { printf '%s\n' "duplex launch --deploy made what is named here; --undeploy removes it."
      "made files" "made runs" "made .duplex-part" "made .duplex-lock" > "$t" &&
    mv "$t" "$d/.duplex-deploy"; } || { rm -f "$t"; exit 1; };
fi;
mkdir -p "$d/files" "$d/runs" || exit 1;
p="$d/$b"; [ -d "$p" ] || p="$d/.duplex-part/$b";
set --; v=;
while read -r k n; do
  case "$k" in
    p) [ -f "$p/$n" ] && set -- "$@" "./$n";;
    x) [ -f "$p/$n" ] && [ -x "$p/$n" ] && set -- "$@" "./$n";;
    f)
      if [ -f "$d/files/$n" ]; then
        h=$(sha256sum < "$d/files/$n") && say "file $n ${h%% *}";
      elif [ -f "$d/files/$n.part" ]; then
        z=$(wc -c < "$d/files/$n.part") && say "part $n" $z;
      fi;;
    t)
      c=${n#* }; n="$d/files/${n%% *}"; i=0;
      while [ $i -lt $c ]; do
        IFS= read -r h || exit 1; printf '%s\n' "$h" || exit 1; i=$((i + 1));
      done > "$n.$s" && mv "$n.$s" "$n" || { rm -f "$n.$s"; exit 1; };;
    r) mkdir -p "$d/runs/$n" && rm -f "$d/runs/$n/.brought-home" || exit 1;;
    v) v=1;;
  esac;
done;
[ $# -eq 0 ] || { cd "$p" && sha256sum "$@"; } | while read -r h n; do say "have $h $n"; done;
if [ -d "$d/$b" ]; then
  say whole;
  [ -z "$v" ] || if e=$("$d/$b/duplex" --version 2>&1 > /dev/null < /dev/null); then
    say runs;
  else
    say "fails $e";
  fi;
fi;
df -Pk "$d" | while read -r x u v w y; do say "free $w"; done;
say end;
)sh";

/// Another deploy may have done the same since this machine was looked at; its program is in use.
constexpr const char* program = R"sh(
b=$2; want=$3; p="$d/.duplex-part"; f=;
whole() {
  h=$(sha256sum < "$d/$b/MANIFEST") && [ "${h%% *}" = "$want" ] && [ -x "$d/$b/duplex" ] &&
    while read -r h n; do
      g=$(sha256sum < "$d/$b/$n") && [ "${g%% *}" = "$h" ] || return 1;
    done < "$d/$b/MANIFEST";
};
[ "$4" ] || ! whole 2> /dev/null || exit 0;
while read -r k n; do [ "$k $n" = "made $b" ] && f=1; done < "$d/.duplex-deploy";
[ "$f" ] || echo "made $b" >> "$d/.duplex-deploy" || exit 1;
if [ -d "$d/$b" ]; then
  rm -rf "$p"; mkdir -p "$p" && mv "$d/$b" "$p/" || exit 1;
else
  mkdir -p "$p/$b" || exit 1;
fi;
cd "$p/$b" || exit 1;
if [ -f MANIFEST ]; then { cat MANIFEST >> .old && rm -f MANIFEST; } || exit 1; fi;
gzip -dc | tar -xof - || exit 1;
h=$(sha256sum < MANIFEST) || exit 1;
[ "${h%% *}" = "$want" ] || no "the program came damaged: run it again";
while read -r h n; do
  g=$(sha256sum < "$n") || exit 1;
  [ "${g%% *}" = "$h" ] || { rm -f "./$n"; no "$n came damaged: run it again"; };
done < MANIFEST;
if [ -f .old ]; then
  nl=$(printf '\n.'); nl=${nl%.}; all="$(cat MANIFEST)$nl";
  while read -r h n; do
    case "$n" in *..*) continue;; esac;
    case "$all" in *"  $n$nl"*) ;; *) rm -f "./$n";; esac;
  done < .old;
  rm -f .old;
fi;
rm -rf "$d/$b"; mv "$p/$b" "$d/" && rm -rf "$p" || exit 1;
e=$("$d/$b/duplex" --version 2>&1 > /dev/null < /dev/null) ||
  no "its program does not run: ${e:-no reason is given}";
)sh";

constexpr const char* file = R"sh(
f="$d/files/$2"; want=$3; z=;
[ ! -e "$f" ] || { h=$(sha256sum < "$f") && [ "${h%% *}" = "$want" ] && exit 0; };
if [ "$4" = 0 ]; then
  rm -f "$f" "$f.part";
else
  z=$(wc -c < "$f.part"); [ "$z" -eq "$4" ] || no "$f.part has changed meanwhile: run it again";
fi;
cat >> "$f.part" || exit 1;
z=$(wc -c < "$f.part") && { [ "$z" -ge "$5" ] || no "the transfer was cut off: run it again"; };
h=$(sha256sum < "$f.part") || exit 1;
[ "${h%% *}" = "$want" ] || { rm -f "$f.part"; no "$2 came damaged: run it again"; };
mv "$f.part" "$f" || exit 1;
)sh";

/// The archive begins behind a line, since a machine's shell may say other things at its start.
constexpr const char* results = R"sh(
"$d/$2/duplex" launch stop --here here --nodefile "$3" > /dev/null 2>&1 < /dev/null;
cd "$d/runs/$4" 2> /dev/null || exit 0;
set --;
for f in *; do
  case "$f" in
    checkpoints) ;;
    *) [ -e "$f" ] && set -- "$@" "./$f";;
  esac;
done;
[ $# -eq 0 ] && exit 0;
say archive;
{ r=$({ { tar -cf - "$@" 4>&-; echo $? >&3; } | gzip -1 3>&- >&4; } 3>&1); } 4>&1;
[ "$r" = 0 ] || exit 1;
)sh";

constexpr const char* end = R"sh(
[ -z "$3" ] || rm -f "$d/files/$3";
if [ "$4" ] && [ -d "$d/runs/$2" ]; then : > "$d/runs/$2/.brought-home"; fi;
)sh";

constexpr const char* removal = R"sh(
[ -e "$d" ] || { say nothing; exit 0; };
{ [ -f "$d/.duplex-deploy" ] && [ -O "$d" ]; } ||
  no "$d stays: there is no .duplex-deploy of yours in it, so launch --deploy has not made it";
r=$(cd "$d" && pwd -P) || exit 1;
! ls -l /proc/[0-9]*/exe 2> /dev/null | grep -qF " -> $r/" ||
  no "$d stays: its program is running (launch stop ends the ranks of a nodefile)";
left=;
while read -r k n; do
  [ "$k" = made ] || continue;
  case "$n" in
    ''|.|..|*/*) ;;
    runs)
      for f in "$d"/runs/*; do
        if [ -e "$f/.brought-home" ]; then
          rm -rf "$f" || exit 1;
        elif [ -d "$f" ] && rmdir "$f" 2> /dev/null; then
          continue;
        elif [ -e "$f" ]; then
          say "kept $f"; left=1;
        fi;
      done;
      rmdir "$d/runs" 2> /dev/null;;
    *) rm -rf "$d/$n" || exit 1;;
  esac;
done < "$d/.duplex-deploy";
[ -z "$left" ] || exit 0;
rm -f "$d/.duplex-deploy" "$d"/.duplex-try-* "$d"/.duplex-new-* || exit 1;
rmdir "$d" 2> /dev/null || [ ! -e "$d" ] || say others;
)sh";

/// The script in one line, since some login shells take no line ends in a quoted word.
std::string one_line(const std::string& text) {
  std::string line;
  bool begins = true;  // Blanks at the beginning of a line do not count.
  for (const char letter : text) {
    if (letter == '\n' && !line.empty()) line += ' ';
    begins = letter == '\n' || (begins && letter == ' ');
    if (!begins) line += letter;
  }
  return line;
}

std::vector<std::string> command(const std::string& script,
                                 const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"sh", "-c", one_line(std::string(beginning) + script), "sh"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

}  // namespace

std::vector<std::string> look_script(const std::string& folder, const std::string& bundle,
                                     const std::string& machine) {
  return command(look, {folder, bundle, machine});
}

std::vector<std::string> program_script(const std::string& folder, const std::string& bundle,
                                        const std::string& manifest_digest, bool was_whole) {
  return command(std::string(locking) + program,
                 {folder, bundle, manifest_digest, was_whole ? "1" : ""});
}

std::vector<std::string> file_script(const std::string& folder, const std::string& name,
                                     const std::string& digest, std::uint64_t offset,
                                     std::uint64_t bytes) {
  return command(std::string(locking) + file,
                 {folder, name, digest, std::to_string(offset), std::to_string(bytes)});
}

std::vector<std::string> results_script(const std::string& folder, const std::string& bundle,
                                        const std::string& nodefile, const std::string& run) {
  return command(results, {folder, bundle, nodefile, run});
}

std::vector<std::string> end_script(const std::string& folder, const std::string& run,
                                    const std::string& key, bool home) {
  return command(end, {folder, run, key, home ? "1" : ""});
}

std::vector<std::string> remove_script(const std::string& folder) {
  return command(removal, {folder});
}

}  // namespace duplex::tools
