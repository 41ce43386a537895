# Tells make/deps.sh and make/probe.sh, which read this file, which distribution this is and where its compiler is.
# Environment: DUPLEX_ROOT  a folder that stands for / where the two look for files, for tests/enterprise_linux.sh
machine=${DUPLEX_ROOT:-}
least_gxx=9  # g++ 8 has no whole C++17: its std::filesystem is a library of its own.

# os_release KEY: prints the value that /etc/os-release has for it, or nothing.
os_release() { sed -n "s/^$1=//p" "$machine/etc/os-release" 2>/dev/null | tr -d "\"'" | head -n1; }

# enterprise_linux: prints the release (8, 9, 10) of Red Hat Enterprise Linux or one that is built from it, or nothing.
enterprise_linux() {
  case " $(os_release ID) $(os_release ID_LIKE) " in
    *' rhel '* | *' centos '* | *' ol '*) os_release VERSION_ID | cut -d . -f 1 ;;
  esac
}

# at_least VERSION MINIMUM: compares them number by number.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1)" = "$2" ]; }

# gxx_fits GXX: succeeds if this compiler is there and new enough.
gxx_fits() { local version && version=$("$1" -dumpversion 2>/dev/null) && at_least "$version" $least_gxx; }

# toolset_of FOLDER: prints the root of the newest gcc-toolset below the folder whose g++ is new enough. These compilers lie
# beside that of Enterprise Linux, in no folder of PATH.
toolset_of() {
  local gxx
  for gxx in $(printf '%s\n' "$1"/opt/rh/gcc-toolset-*/root/usr/bin/g++ | sort -rV); do
    if gxx_fits "$gxx"; then
      echo "${gxx%/usr/bin/g++}"
      return
    fi
  done
  return 1
}
