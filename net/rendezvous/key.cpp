#include "net/rendezvous/key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.h"

namespace duplex::net {
namespace {

/// Distinguishes a key file from any other file of hexadecimal digits.
constexpr std::string_view prefix = "duplex-key-1 ";

class File {
 public:
  File(const std::string& path, int flags, mode_t mode = 0)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

int value_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

std::string Key::text() const {
  return std::string(prefix) + hex(secret_.data(), secret_.size()) + "\n";
}

Key create_key(const std::string& path) {
  const Key key(random_digest());
  const File file(path, O_WRONLY | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
  if (file.fd() < 0)
    throw Error("key file " + path + " cannot be made: " + std::strerror(errno) +
                (errno == EEXIST ? "; a key that is in use is never overwritten" : ""));
  const std::string text = key.text();
  // The umask may have taken bits away, but the owner needs both.
  if (fchmod(file.fd(), S_IRUSR | S_IWUSR) != 0 ||
      ::write(file.fd(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fsync(file.fd()) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    throw Error("key file " + path + " cannot be written: " + std::strerror(error));
  }
  return key;
}

Key read_key(const std::string& path) {
  const File file(path, O_RDONLY | O_NONBLOCK);  // A pipe is refused, not waited for.
  if (file.fd() < 0)
    throw Error("key file " + path + " cannot be read: " + std::strerror(errno) +
                "; `duplex keygen FILE` makes one, every rank needs a copy");
  struct stat status {};
  if (fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode))
    throw Error("key file " + path + " is no regular file");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw Error("key file " + path + " is open to others than its owner: chmod 600 " + path);
  if (!trusted_owner(status.st_uid, ::geteuid()))
    throw Error("key file " + path +
                " belongs to another user, who knows the key and can change it");

  const std::string bad = "key file " + path + " holds no key; `duplex keygen FILE` makes one";
  const std::size_t expected = prefix.size() + 2 * Key::bytes + 1;
  std::string text(expected + 1, '\0');
  const ssize_t got = ::read(file.fd(), text.data(), text.size());
  if (got != static_cast<ssize_t>(expected) || text.compare(0, prefix.size(), prefix) != 0 ||
      text[expected - 1] != '\n')
    throw Error(bad);
  Digest secret;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const int high = value_of(text[prefix.size() + 2 * i]);
    const int low = value_of(text[prefix.size() + 2 * i + 1]);
    if (high < 0 || low < 0) throw Error(bad);
    secret[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return Key(secret);
}

}  // namespace duplex::net
