// The commands of bin/duplex, each in a file of its own. A command parses its own arguments
// (argv[0] is its name) and returns an exit code; errors are thrown as duplex::Error.
#pragma once

namespace duplex::tools {

int local(int argc, const char* const* argv);
int dist(int argc, const char* const* argv);
int evaluate(int argc, const char* const* argv);
int classify(int argc, const char* const* argv);
int nets(int argc, const char* const* argv);
int onnx(int argc, const char* const* argv);
int pack(int argc, const char* const* argv);
int keygen(int argc, const char* const* argv);
int bench(int argc, const char* const* argv);
int launch(int argc, const char* const* argv);
int check(int argc, const char* const* argv);
int transport(int argc, const char* const* argv);
int probe(int argc, const char* const* argv);
int plan(int argc, const char* const* argv);
int partition(int argc, const char* const* argv);
int estimate(int argc, const char* const* argv);
int simulate(int argc, const char* const* argv);
int report(int argc, const char* const* argv);
int compare(int argc, const char* const* argv);

}  // namespace duplex::tools
