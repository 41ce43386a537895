#!/bin/bash
# Prints the C++ file that lists the networks; a network's name is the base name of its file models/*.cpp.
# Usage: make/registry.sh NAME...
set -eu
echo '// Written by make/registry.sh from the files in models/.'
echo '#include "models/registry.h"'
echo
echo 'namespace duplex::models {'
echo
for name; do
  if [[ ! $name =~ ^[a-z][a-z0-9_]*$ ]]; then
    echo "models/$name.cpp: a network's file is named like its function: lower case, digits, _" >&2
    exit 1
  fi
  echo "Model $name(const ModelOptions&);"
done
echo
echo 'const std::vector<std::pair<std::string, Builder>>& all() {'
echo '  static const std::vector<std::pair<std::string, Builder>> table = {'
for name; do echo "      {\"$name\", $name},"; done
echo '  };'
echo '  return table;'
echo '}'
echo
echo '}  // namespace duplex::models'
