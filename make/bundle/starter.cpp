// The `duplex` of a bundle: runs bin/duplex of its own folder by the loader of that folder, with
// the libraries of that folder. The loader's path in a program is absolute, so a program that lies
// anywhere has to be given to its loader by name. This one must need nothing of the machine, the C
// library's loader included: it is static, has no library and calls the kernel of x86-64 Linux.
// Before that, it looks for every file of bin/ and lib/ that MANIFEST names: the loader would take
// a library that is missing from the machine, where there is another version of it. Exit code: that
// of the program; 1 if the bundle is damaged.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

// Calls that the compiler may add, even here.
extern "C" void* memcpy(void* to, const void* from, size_t size) {
  for (size_t i = 0; i < size; ++i)
    static_cast<volatile char*>(to)[i] = static_cast<const char*>(from)[i];
  return to;
}
extern "C" void* memset(void* to, int value, size_t size) {
  for (size_t i = 0; i < size; ++i) static_cast<volatile char*>(to)[i] = static_cast<char>(value);
  return to;
}

namespace {

long word(long value) {
  return value;
}
long word(const void* address) {
  return reinterpret_cast<long>(address);
}

/// Calls the kernel with three arguments at most. Returns its result, or -errno.
template <class... Arguments>
long call(long number, Arguments... given) {
  const long words[3] = {word(given)...};
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(words[0]), "S"(words[1]), "d"(words[2])
               : "rcx", "r11", "memory");
  return result;
}

size_t length_of(const char* text) {
  size_t length = 0;
  while (text[length] != '\0') ++length;
  return length;
}

bool begins(const char* text, const char* beginning) {
  while (*beginning != '\0')
    if (*text++ != *beginning++) return false;
  return true;
}

/// Text of a limited length, which ends with a zero; what is too long is cut and noted.
template <size_t most>
struct Text {
  char bytes[most];
  size_t length;
  bool cut;

  Text& set(const char* text) {
    length = 0;
    cut = false;
    return add(text);
  }
  Text& add(const char* text) {
    for (; *text != '\0'; ++text) {
      if (length + 1 == most) {
        cut = true;
        break;
      }
      bytes[length++] = *text;
    }
    bytes[length] = '\0';
    return *this;
  }
};

using Path = Text<PATH_MAX>;
// The stack of a program without a C library is left small.
Path own, folder, file;
Text<2 * PATH_MAX> line;
char manifest[1 << 18];

[[noreturn]] void end(long code) {
  for (;;) call(SYS_exit_group, code);
}

/// Says "duplex: FOLDER: WHAT WHY", in one line, and ends the program.
[[noreturn]] void fail(const char* what, const char* why) {
  line.set("duplex: ")
      .add(folder.bytes)
      .add(folder.length > 0 ? ": " : "")
      .add(what)
      .add(why)
      .add("\n");
  call(SYS_write, 2L, line.bytes, static_cast<long>(line.length));
  end(1);
}

/// Returns why a call did not succeed, and what to do.
const char* reason(long result) {
  switch (-result) {
    case ENOENT:
    case ENOTDIR:
      return " is missing; unpack the bundle's archive again";
    case EACCES:
      return " may not be read or run by this user; unpack the bundle's archive as this user";
    case ENOEXEC:
      return " is no program for this machine; unpack the bundle's archive again";
    case ENAMETOOLONG:
      return " has too long a path; unpack the bundle elsewhere";
    case EBADMSG:
      return " is damaged; unpack the bundle's archive again";
    case E2BIG:
      return " is given too many arguments or too large an environment";
    case ENOMEM:
      return " does not fit into memory";
    default:
      return " cannot be read or run; unpack the bundle's archive again";
  }
}

/// Returns the value of a variable of the environment, or null.
const char* value_of(char** environment, const char* name) {
  for (; *environment != nullptr; ++environment)
    if (begins(*environment, name) && (*environment)[length_of(name)] == '=')
      return *environment + length_of(name) + 1;
  return nullptr;
}

/// Sets `to` to what a symbolic link leads to. Returns whether it is one.
bool read_link(const char* link, Path& to) {
  const long length = call(SYS_readlink, link, to.bytes, long{PATH_MAX - 1});
  if (length <= 0) return false;
  to.length = static_cast<size_t>(length);
  to.bytes[to.length] = '\0';
  to.cut = to.length == PATH_MAX - 1;
  return true;
}

/// Cuts a path behind its last slash; nothing remains of a name without one.
void keep_folder(Path& path) {
  while (path.length > 0 && path.bytes[path.length - 1] != '/') --path.length;
  path.bytes[path.length] = '\0';
}

/// Sets `own` to this program's absolute path. Where /proc is not mounted that is the path by which
/// it was called, with the symbolic links at its end followed.
void find_own(const char* called) {
  if (read_link("/proc/self/exe", own)) return;
  own.set(called);
  for (int links = 0; links < 40 && read_link(own.bytes, file); ++links) {
    if (file.bytes[0] == '/') own.length = 0;
    keep_folder(own);
    own.add(file.bytes);
  }
  if (own.bytes[0] == '/') return;
  file.set(own.bytes);
  if (call(SYS_getcwd, own.bytes, long{PATH_MAX - 1}) < 0) own.bytes[0] = '\0';
  own.length = length_of(own.bytes);
  own.add("/").add(file.bytes);
}

/// Sets `file` to the path of a file of the bundle.
const char* in_bundle(const char* name) {
  return file.set(folder.bytes).add("/").add(name).bytes;
}

/// Looks for the files of bin/ and lib/ that MANIFEST names; each of its lines is a digest, two
/// spaces and a path. Ends the program if one is not there.
void check_files() {
  const long opened = call(SYS_open, in_bundle("MANIFEST"), long{O_RDONLY | O_CLOEXEC});
  if (opened < 0) fail("MANIFEST", reason(opened));
  size_t size = 0;
  for (;;) {
    const long got =
        call(SYS_read, opened, manifest + size, static_cast<long>(sizeof manifest - 1 - size));
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  call(SYS_close, opened);
  constexpr size_t digest = 64 + 2;
  int seen = 0;
  for (char *at = manifest, *next; at < manifest + size; at = next) {
    char* line_end = at;
    while (line_end < manifest + size && *line_end != '\n') ++line_end;
    *line_end = '\0';
    next = line_end + 1;
    if (static_cast<size_t>(line_end - at) <= digest) fail("MANIFEST", reason(-EBADMSG));
    const char* name = at + digest;
    if (!begins(name, "bin/") && !begins(name, "lib/")) continue;
    const long there = call(SYS_access, in_bundle(name), long{R_OK});
    if (there < 0) fail(name, reason(there));
    ++seen;
  }
  if (seen == 0) fail("MANIFEST", reason(-EBADMSG));
}

}  // namespace

/// The kernel begins here, by way of _start: the stack has the number of arguments, the arguments,
/// the environment and the auxiliary vector, each with a zero behind it.
extern "C" [[noreturn, gnu::used]] void begin(char** stack) {
  const auto count = reinterpret_cast<size_t>(stack[0]);
  char** arguments = stack + 1;
  char** environment = arguments + count + 1;
  char** rest = environment;
  while (*rest != nullptr) ++rest;
  const char* called = count > 0 ? arguments[0] : "";
  for (auto* entry = reinterpret_cast<const Elf64_auxv_t*>(rest + 1); entry->a_type != AT_NULL;
       ++entry)
    if (entry->a_type == AT_EXECFN) called = reinterpret_cast<const char*>(entry->a_un.a_val);

  find_own(called);
  folder.set(own.bytes);
  keep_folder(folder);
  if (folder.length > 1) folder.bytes[--folder.length] = '\0';
  if (own.cut || folder.length + 256 > PATH_MAX) fail("the bundle", reason(-ENAMETOOLONG));
  for (const char* letter = folder.bytes; *letter != '\0'; ++letter)
    if (*letter == ':' || *letter == ';' || *letter == '$')
      fail("the loader reads :, ; and $ in a path as its own; ",
           "unpack the bundle into a folder without them");
  check_files();

  // Folders that the user names come behind the bundle's, and children inherit no folder of it.
  const char* others = value_of(environment, "LD_LIBRARY_PATH");
  if (others == nullptr) others = "";
  const size_t room = folder.length + sizeof "/lib:" + length_of(others);
  char* libraries = static_cast<char*>(__builtin_alloca(room));
  char* to = libraries;
  const char* const parts[] = {folder.bytes, "/lib", *others != '\0' ? ":" : "", others};
  for (const char* part : parts)
    while (*part != '\0') *to++ = *part++;
  *to = '\0';
  Path& program = own;
  program.set(folder.bytes).add("/bin/duplex");
  in_bundle("lib/ld-linux-x86-64.so.2");
  const char** words = static_cast<const char**>(__builtin_alloca((count + 5) * sizeof(char*)));
  size_t used = 0;
  const char* const loader[] = {file.bytes, "--library-path", libraries, program.bytes};
  for (const char* word : loader) words[used++] = word;
  for (size_t i = 1; i < count; ++i) words[used++] = arguments[i];
  words[used] = nullptr;
  fail("lib/ld-linux-x86-64.so.2", reason(call(SYS_execve, file.bytes, words, environment)));
}

asm(R"(
  .globl _start
_start:
  xor %ebp, %ebp
  mov %rsp, %rdi
  and $-16, %rsp
  call begin
)");
