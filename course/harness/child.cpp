#include "course/harness/child.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <new>
#include <thread>

#include "core/clock.h"
#include "core/error.h"

namespace duplex::course {
namespace {

/// The child leaves this behind in memory that both see.
struct Note {
  bool finished = false, threw = false;
  int signal = 0;
  const void* address = nullptr;
  bool nowhere = false;
  double seconds = 0.0;
  char what[400] = "";
};

Note* note_of_child = nullptr;  // The signal handler has no other way to it.

void note_fault(int signal, siginfo_t* info, void*) {
  note_of_child->signal = signal;
  note_of_child->address = info->si_addr;
  note_of_child->nowhere = info->si_code == SI_KERNEL;
  ::_exit(1);
}

/// Returns the time that this process has had of a processor, which other programs do not change
/// much.
double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void limit(decltype(RLIMIT_CORE) what, rlim_t value) {
  const rlimit both{value, value};
  ::setrlimit(what, &both);
}

/// Returns the bytes of address space that this process has.
rlim_t bytes_in_use() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

void prepare_child(const Limits& limits) {
  static std::byte stack[1 << 16];  // An endless recursion leaves no other.
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof(stack);
  ::sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_sigaction = note_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS}) ::sigaction(signal, &action, nullptr);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // A crash loses no line that was printed before it.
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, rlim_t{16} << 20);
  // A parent that is killed leaves no child that runs for ever.
  limit(RLIMIT_CPU, static_cast<rlim_t>(limits.time.count() / 1000 + 2));
  if (built_with_sanitizer) return;
  limit(RLIMIT_NOFILE, 16);
  limit(RLIMIT_AS, bytes_in_use() + limits.memory);
}

[[noreturn]] void be_child(const std::function<void()>& work, const Limits& limits) {
  prepare_child(limits);
  Note& note = *note_of_child;
  const auto threw = [&note](const char* what) {
    note.threw = true;
    std::strncpy(note.what, what, sizeof(note.what) - 1);
  };
  try {
    const double began = processor_seconds();
    work();
    note.seconds = processor_seconds() - began;
    note.finished = true;
  } catch (const std::bad_alloc&) {
    threw("it asked for more memory than it may have");
  } catch (const std::exception& error) {
    threw(error.what());
  } catch (...) {
    threw("an exception that is no std::exception");
  }
  std::fflush(nullptr);
  ::_exit(0);
}

/// Waits for the child's end. Returns false where it had to be ended.
bool wait_for(pid_t child, std::chrono::milliseconds time, int& status) {
  const auto deadline = Clock::now() + time;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

Outcome outcome_of(const Note& note, int status) {
  Outcome outcome;
  outcome.seconds = note.seconds;
  outcome.what = note.what;
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : note.signal;
  outcome.address = note.address;
  outcome.nowhere = note.nowhere;
  outcome.how = note.signal != 0      ? Outcome::How::touched
                : WIFSIGNALED(status) ? Outcome::How::killed
                : note.threw          ? Outcome::How::threw
                : note.finished       ? Outcome::How::finished
                                      : Outcome::How::left;
  return outcome;
}

}  // namespace

Outcome run_in_child(const std::function<void()>& work, const Limits& limits) {
  void* shared =
      ::mmap(nullptr, sizeof(Note), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw Error(std::string("no memory: ") + std::strerror(errno));
  note_of_child = new (shared) Note;
  std::fflush(nullptr);  // What waits to be printed must not be printed twice.
  const pid_t child = ::fork();
  if (child < 0) {
    const std::string why = std::strerror(errno);
    ::munmap(shared, sizeof(Note));
    throw Error("no process can be made: " + why + "; close other programs");
  }
  if (child == 0) be_child(work, limits);
  int status = 0;
  Outcome outcome;
  if (wait_for(child, limits.time, status))
    outcome = outcome_of(*note_of_child, status);
  else
    outcome.how = Outcome::How::timed_out;
  ::munmap(shared, sizeof(Note));
  return outcome;
}

}  // namespace duplex::course
