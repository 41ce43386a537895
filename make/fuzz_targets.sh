#!/bin/bash
# Prints the C++ file that lists fuzz targets; a target's name is the base name of its file
# tests/fuzz/targets/*.cpp.
# Usage: make/fuzz_targets.sh NAME...
set -eu
echo '// Written by make/fuzz_targets.sh from the files in tests/fuzz/targets/.'
echo '#include "tests/fuzz/target.h"'
echo
echo 'namespace duplex::fuzz {'
echo
for name; do echo "void $name(const Bytes& input);"; done
echo
echo 'const std::vector<Target>& targets() {'
echo '  static const std::vector<Target> all = {'
for name; do echo "      {\"$name\", $name},"; done
echo '  };'
echo '  return all;'
echo '}'
echo
echo '}  // namespace duplex::fuzz'
