// Key files that are refused.
#include "net/rendezvous/key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "core/error.h"
#include "tests/temporary_folder.h"

namespace duplex::net {
namespace {

class KeyFile : public testing::Test {
 protected:
  std::string refusal() const {
    try {
      read_key(path);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
  void write(const std::string& text) const {
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0600);
  }
  const TemporaryFolder folder;
  const std::string path = folder / "cluster.key";
};

TEST_F(KeyFile, IsItsOwnersAloneAndReadsBack) {
  const mode_t before = ::umask(0);
  const Key made = create_key(path);
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_FALSE(made.empty());
  EXPECT_EQ(read_key(path).hmac("x"), made.hmac("x"));
  EXPECT_NE(made.hmac("x"), Key().hmac("x"));
}

TEST_F(KeyFile, IsNeverOverwritten) {
  const Key made = create_key(path);
  EXPECT_THROW(create_key(path), Error);
  EXPECT_EQ(read_key(path).hmac("x"), made.hmac("x"));
}

TEST_F(KeyFile, OpenToOthersIsRefusedWithTheCure) {
  create_key(path);
  for (const mode_t mode : {0640, 0604, 0620}) {
    ::chmod(path.c_str(), mode);
    EXPECT_NE(refusal().find("chmod 600 " + path), std::string::npos) << std::oct << mode;
  }
}

TEST_F(KeyFile, APipeIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(refusal().find("no regular file"), std::string::npos);
}

TEST_F(KeyFile, AnotherUsersIsRefused) {
  EXPECT_TRUE(trusted_owner(1000, 1000));
  EXPECT_TRUE(trusted_owner(0, 1000));
  EXPECT_FALSE(trusted_owner(1001, 1000));
  EXPECT_FALSE(trusted_owner(1000, 0));
  create_key(path);
  const bool given = ::chown(path.c_str(), 12345, 12345) == 0;  // Root alone can give a file away.
  EXPECT_EQ(refusal().find("belongs to another user") != std::string::npos, given);
}

TEST_F(KeyFile, WhatIsNoKeyIsRefused) {
  EXPECT_NE(refusal().find("duplex keygen"), std::string::npos);
  const std::string good = create_key(path).text();
  for (const std::string& text :
       {std::string(), std::string("hello\n"), good + "x", good.substr(0, good.size() - 2) + "\n",
        good.substr(0, good.size() - 2) + "g\n", good.substr(0, good.size() - 1) + " "}) {
    write(text);
    EXPECT_NE(refusal().find("holds no key"), std::string::npos) << text;
  }
  write(good);
  EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace duplex::net
