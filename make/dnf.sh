# Gets packages on Fedora, and on Enterprise Linux from 8 on: Red Hat's, CentOS Stream, AlmaLinux, Rocky Linux, Oracle
# Linux. make/deps.sh reads this file and calls dnf_as_root or dnf_without_root; `missing', `deps', `work', `machine' and
# the functions that this file calls are there and in make/distribution.sh. docs/platforms.md has what each release packages.
# Environment: EPEL  a mirror of EPEL, for users who are not root (default Fedora's own)
epel_url=${EPEL:-https://dl.fedoraproject.org/pub/epel}
el=$(enterprise_linux)

options=()   # These go to every dnf of a user who may not enable repositories.
steps=()     # Root enables repositories by these commands.
packages=()  # They are there and new enough.
lacking=()   # Lines say what is not, and what to do.

# dnf_fail WHY: ends the script with dnf's own last words and what root would do; without an error if all that is missing
# is optional.
dnf_fail() {
  if [ ${#needed[@]} = 0 ]; then
    go_without "${1%.}" "${optional[@]}"
    exit 0
  fi
  grep -v '^ *$' "$work/log" | tail -n 6 >&2
  echo "$1" >&2
  [ ${#packages[@]} != 0 ] || packages=("${needed[@]}" "${optional[@]}")
  steps+=("dnf -y install ${packages[*]}")
  local commands
  commands=$(printf ' && %s' "${steps[@]}")
  echo "As root: ${commands# && }" >&2
  bundle_remedy >&2
  exit 1
}

bundle_remedy() { echo "Or run \`make bundle' where Duplex can be built, and bring its archive, which runs here as it is (docs/bundle.md)."; }

# look_up PACKAGE: sets `version' to the newest that the repositories have of it, or of what replaces it (zlib-ng provides
# zlib-devel), or to nothing.
look_up() {
  dnf -q "${options[@]}" repoquery --qf '%{version}\n' --whatprovides "$1" >"$work/answer" 2>"$work/log" ||
    dnf_fail "dnf could not look up $1."
  version=$(grep -x '[0-9][^ ]*' "$work/answer" | sort -V | tail -n1)
}

# dnf_repositories: finds out which of the repositories that Enterprise Linux needs beside its own are not enabled: EPEL, and
# the one that EPEL builds on (CodeReady Builder), whose name differs. Sets `steps', and `options' for who may not do that.
dnf_repositories() {
  local enabled disabled builder='crb|powertools|ol[0-9]+_codeready_builder|codeready-builder-for-rhel-[0-9]+-[a-z0-9_]+-rpms' id
  [ "$el" ] || return 0
  enabled=$(dnf -q repolist --enabled 2>"$work/log" | awk 'NR > 1 { print $1 }')
  disabled=$(dnf -q repolist --disabled 2>"$work/log" | awk 'NR > 1 { print $1 }')
  if ! grep -qiE "^($builder)$" <<<"$enabled" && id=$(grep -m1 -iE "^($builder)$" <<<"$disabled"); then
    options+=("--enablerepo=$id")
    case $id in
      codeready-*-rhui-*) steps+=("dnf config-manager --set-enabled $id") ;;
      codeready-*) steps+=("subscription-manager repos --enable $id") ;;
      *) steps+=("dnf config-manager --set-enabled $id") ;;
    esac
  fi
  if ! grep -qiE '^(epel|ol[0-9]+_developer_epel)$' <<<"$enabled"; then
    if id=$(grep -m1 -iE '^(epel|ol[0-9]+_developer_epel)$' <<<"$disabled"); then
      options+=("--enablerepo=$id")
      steps+=("dnf config-manager --set-enabled $id")
    else
      steps+=('dnf -y install epel-release')
      for id in epel-release "oracle-epel-release-el$el" "https://dl.fedoraproject.org/pub/epel/epel-release-latest-$el.noarch.rpm"; do
        case $id in https:*) break ;; esac
        look_up "$id"
        [ ! "$version" ] || break
      done
      steps[${#steps[@]}-1]="dnf -y install $id"
      options+=("--repofrompath=epel,$epel_url/$el/Everything/$(uname -m)/")
    fi
  fi
  # A minimal system lacks this command of dnf.
  if [[ "${steps[*]}" = *config-manager* ]] && ! dnf -q config-manager --help >/dev/null 2>&1; then
    steps=('dnf -y install dnf-plugins-core' "${steps[@]}")
  fi
}

# choose_compiler: sets `package' and `version' to a g++ that is new enough: the distribution's, or the newest gcc-toolset
# that has been tried. Enterprise Linux 8 has g++ 8 and the toolsets 9 to 14. If there is none, it leaves gcc-c++.
choose_compiler() {
  local number
  look_up gcc-c++
  at_least "$version" $least_gxx && return
  for number in 14 13 12 11 10 9; do
    package=gcc-toolset-$number-gcc-c++
    look_up $package
    [ ! "$version" ] || return 0
  done
  package=gcc-c++
  look_up $package
}

# dnf_choose: sorts what is missing into `packages' and `lacking'. Ends the script if something is lacking that it
# cannot be built without.
dnf_choose() {
  local entry what package flag minimum why remedy stop=
  for entry in "${missing[@]}"; do
    IFS='|' read -r what _ package flag minimum <<<"$entry"
    [ "$package" ] || continue
    if [ "$package" = gcc-c++ ]; then
      choose_compiler
      [ $package != gcc-c++ ] || minimum=$least_gxx  # The version of a toolset's package is that of its g++.
    else
      look_up "$package"
    fi
    if [ ! "$version" ]; then why="no repository here has $package"
    elif [ "$minimum" ] && ! at_least "$version" "$minimum"; then why="$package is $version here, and $minimum or newer is wanted"
    else
      packages+=("$package")
      continue
    fi
    case $what in
      stb | CLI11 | json)
        remedy="it is headers alone: run \`make carry' in a checkout on Debian 12, Ubuntu 22.04 or newer, and copy its .deps/ into this one"
        stop=1 ;;
      GoogleTest) remedy='going without tests; make builds without it' ;;
      oneDNN) remedy="going without it, on the slow reference loops; an archive of \`make bundle' has it (docs/bundle.md)" ;;
      *)
        remedy="going without it"
        [ "$flag" ] || { remedy="Duplex cannot be built here" stop=1; } ;;
    esac
    lacking+=("$what: $why; $remedy.")
    if [ "$flag" ]; then mkdir -p "$deps" && touch "$deps/unavailable"; fi
  done
  [ ${#lacking[@]} = 0 ] || printf '%s\n' "${lacking[@]}" >&2
  if [ "$stop" ]; then
    bundle_remedy >&2
    exit 1
  fi
}

dnf_as_root() {
  local step
  dnf_repositories
  for step in "${steps[@]}"; do
    echo "Enabling repositories: $step"
    $step >"$work/log" 2>&1 || dnf_fail "This failed: $step."
  done
  options=() steps=()
  dnf_choose
  [ ${#packages[@]} = 0 ] && return
  echo "Installing packages: ${packages[*]}"
  dnf -q -y install "${packages[@]}" >"$work/log" 2>&1 || dnf_fail "dnf could not install them."
}

dnf_without_root() {
  local file
  dnf_repositories
  dnf_choose
  [ ${#packages[@]} = 0 ] && return
  echo "Unpacking packages into .deps/ (no root here): ${packages[*]}"
  command -v rpm2cpio >/dev/null && command -v cpio >/dev/null || dnf_fail "There is no rpm2cpio or no cpio to unpack packages with."
  dnf -q -y "${options[@]}" download --resolve --destdir "$work" "${packages[@]}" >"$work/log" 2>&1 ||
    dnf_fail "dnf could not download them."
  touch "$deps/incomplete"
  for file in "$work"/*.rpm; do
    # The C library must be that of the loader with which the machine starts programs.
    case ${file##*/} in glibc-[0-9]* | glibc-common-[0-9]*) continue ;; esac
    rpm2cpio "$file" | (cd "$deps" && cpio -idmu --quiet) || fail "Could not unpack ${file##*/} into .deps/."
  done
}
