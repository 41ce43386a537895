#!/bin/bash
# Gives ONNX files that tests/models writes to onnxruntime, whose outputs must be those of the program to 1e-5 of the
# largest, and reads files back that the package onnx has changed. Skipped without a Python that has onnxruntime.
# Environment: DUPLEX  the program; PYTHON  one that has onnxruntime (default python3)
set -u
cd "$(dirname "$0")/.." || exit 1
python=${PYTHON:-python3}
tests=$(dirname "$(dirname "$DUPLEX")")/build/tests/models
[ -x "$tests" ] || tests=$(dirname "$DUPLEX")/../tests/models
[ -x "$tests" ] || { echo 'tests/models is not built'; exit 77; }
"$python" -c 'import onnxruntime, numpy' 2>/dev/null || { echo 'there is no Python here that has onnxruntime'; exit 77; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
ONNX_OUT=$out "$tests" --gtest_filter='*OnnxFile*' >"$out/log" 2>&1 || { cat "$out/log"; exit 1; }
"$python" - "$out" <<'END' || exit 1
import glob, sys
import numpy, onnxruntime
onnxruntime.set_default_logger_severity(3)
bad = 0
files = sorted(glob.glob(sys.argv[1] + "/*.onnx"))
for file in files:
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    entry = session.get_inputs()[0]
    images = numpy.fromfile(file[:-5] + ".images", numpy.float32).reshape(-1, *entry.shape[1:])
    wanted = numpy.fromfile(file[:-5] + ".outputs", numpy.float32)
    found = session.run(None, {entry.name: images})[0].ravel()
    error = abs(found - wanted).max() / abs(wanted).max()
    print(f"{file.rsplit('/', 1)[1]}: {error:.1e} of the largest output")
    bad += not error <= 1e-5
assert len(files) == 4, files
sys.exit(bad > 0)
END
# The way back by the command, and a second time forth: the same file.
"$DUPLEX" onnx import "$out/googlenet.onnx" --output "$out/g.net" --save "$out/g.safetensors" >/dev/null || exit 1
"$DUPLEX" onnx export --net "$out/g.net" --weights "$out/g.safetensors" --output "$out/again.onnx" >/dev/null || exit 1
"$python" - "$out" <<'END'
import sys
import numpy, onnxruntime
results = []
for name in ("googlenet", "again"):
    session = onnxruntime.InferenceSession(f"{sys.argv[1]}/{name}.onnx", providers=["CPUExecutionProvider"])
    entry = session.get_inputs()[0]
    images = numpy.fromfile(sys.argv[1] + "/googlenet.images", numpy.float32).reshape(-1, *entry.shape[1:])
    results.append(session.run(None, {entry.name: images})[0])
assert (results[0] == results[1]).all(), abs(results[0] - results[1]).max()
END
