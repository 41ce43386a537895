// The part of `duplex check` that runs on every machine of the nodefile.
#pragma once
#include <cstdio>

namespace duplex::tools {

/// Reads a task from `in`, answers with the facts of this machine, and then with what each further
/// line asks for, until `in` ends, as it does when whoever checks has ended. Throws Error for a
/// line that is no such message. Threads that look names up may still run when it returns: end the
/// process without destroying what is global.
void serve_check(std::FILE* in, std::FILE* out);

}  // namespace duplex::tools
