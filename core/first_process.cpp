#include "core/first_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace duplex {
namespace {

/// Passes the signals on that come, and ends with the child. `all` are blocked.
[[noreturn]] void wait_for(pid_t child, const sigset_t& all) {
  for (;;) {
    int signal = 0;
    if (::sigwait(&all, &signal) != 0) continue;
    if (signal != SIGCHLD) ::kill(child, signal);
    int status = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0)
      if (ended == child)
        ::_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  }
}

}  // namespace

void leave_first_process() {
  if (::getpid() != 1) return;
  // Where the caller ignores this signal, the kernel tells nobody that a child has ended.
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t child = ::fork();
  if (child > 0) wait_for(child, all);
  if (child == 0) {
    // A terminal sends Ctrl-C to a whole group of processes; in the same one, the child would get
    // it twice, and the second ends a training without a checkpoint.
    ::setpgid(0, 0);
    ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace duplex
