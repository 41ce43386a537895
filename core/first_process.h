// Process 1 of a container, whose part a program must play that is the container's first.
#pragma once

namespace duplex {

/// Goes on in a child where this process is number 1, and waits for it here. The kernel keeps
/// those signals from process 1 that it has no handler for, so SIGTERM and Ctrl-C would do nothing
/// until a training begins, and a container's end would wait until it is killed. The process that
/// stays passes signals on, collects the processes that have lost their parents, and ends with the
/// child's exit code, or with 128 and the number of the signal that ended it.
///
/// Returns in the child, and at once where this process has another number. No thread may have been
/// started before. If there can be no child, this process goes on as number 1.
void leave_first_process();

}  // namespace duplex
