#!/bin/bash
# Tests `make exercise` as a student uses it, in a copy of the sources: stubs, what does not compile, a right solution,
# predictions, and the table of all exercises.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; cat "$work/log"; exit 1; }
tar -cf - --exclude='*.o' Makefile make core layers models datasets net tools course | tar -xf - -C "$work"
[ ! -d .deps ] || ln -s "$PWD/.deps" "$work/.deps"
cd "$work"
student=course/01_convolution/convolution.cpp prediction=course/01_convolution/prediction.txt

# exercise CODE WORDS...: make with these words ends with that exit code: 0, or anything else.
exercise() {
  local expected=$1 code=0
  shift
  # The settings of the make that runs this test are not a student's.
  env -i "PATH=$PATH" "HOME=$work" make -s "$@" > log 2>&1 || code=1
  [ $code = "$expected" ] || fail "make $*: exit code $code"
}
has() { grep -qF -- "$1" log || fail "no \"$1\" in:"; }

exercise 1 exercise N=1
has "check       failed in case 1 of 7: one weight on a map of 3x4"
has "convolve() is not written yet"
for wrong in N= N=x N=99 "N=1 2" N=convolution; do
  exercise 1 exercise "$wrong"
  has "there is no such exercise; there are: 01_convolution"
done

sed 's/duplex::course::not_written("convolve");/int nine = "text";/' $student > other && cp $student stub && mv other $student
exercise 1 exercise N=01
has "failed: it does not compile"
grep -qE "^$student:[0-9]+:[0-9]+: error: " log || fail "where the error is:"
[ "$(wc -l < log)" -le 8 ] || fail "too much is said of an error:"
sed 's/void convolve/void fold/' stub > $student
exercise 1 exercise N=1
has "the program needs exercise::convolve("
has "has your function the name and the parameters"

cp $student other.cpp
mv other.cpp course/01_convolution/convolution_before.cpp
rm $student
exercise 1 exercise N=01_convolution
has "$student is missing; git checkout $student brings the stub back"

# The program's own convolution, as a student's. A copy of what was there before does no harm.
cat > $student << 'END'
#include "course/01_convolution/check.h"

namespace exercise {

void convolve(const ConvShape& s, const float* x, const float* w, const float* b, float* y) {
  int nine;
  duplex::course::products_convolution(s, x, w, b, y);
}

}  // namespace exercise
END
exercise 0 exercise N=1
has "check       passed: 7 of 7 cases"
has "warning: unused variable"
has "multiply-adds a second on 16 channels"
has "Before this is measured, write into $prediction:"
printf 'multiply_adds = 115605504\nseconds = soon\n' > $prediction
exercise 1 exercise N=1
has "error: $prediction, line 2: \"soon\" is no number"
printf 'multiply_adds = 115605504\nseconds = 0.1\n' > $prediction
exercise 0 exercise N=1
grep -qE '^multiply_adds +115605504 +115605504 +exact$' log || fail "the figures:"
grep -qE '^seconds +0\.1 +[0-9.e-]+ +([+-][0-9.]+ %|[0-9.e+]+ times)$' log || fail "the figures:"

printf 'int' > course/02_pooling/pooling.cpp
exercise 0 exercises FORMAT=csv
has "exercise,check,passed,cases,predicted"
has "01_convolution,passed,7,7,yes"
has "02_pooling,does not compile,0,0,-"
has "03_gradient_check,failed,0,8,no"
has "06_central_server,failed,0,9,no"
has "08_schedules,failed,0,8,no"
exercise 0 exercises
grep -qE '^04_optimisers +failed +0 of 6 +no$' log || fail "the table:"
exercise 1 exercises FORMAT=xml
has "FORMAT=xml: there are table and csv"
