// Tests what a machine tells of itself: against what the kernel says by other calls, and on files
// as other machines have them.
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/check/machine/host_facts.h"
#include "tools/check/machine/load.h"
#include "tools/check/machine/network_facts.h"
#include "tools/check/machine/program_facts.h"
#include "tools/check/machine/queue.h"

namespace duplex::tools::testing {
namespace {

namespace fs = std::filesystem;

/// A folder in which the files of another machine are laid out.
class CheckFacts : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(folder_ / path).parent_path());
    write_text(folder_ / path, text);
  }
  MachineFacts host() const {
    MachineFacts facts;
    add_host_facts(facts, folder_.path());
    return facts;
  }

  TemporaryFolder folder_;
};

TEST_F(CheckFacts, OfThisMachineAreWhatTheKernelSays) {
  MachineFacts facts;
  add_host_facts(facts);
  utsname system{};
  ASSERT_EQ(::uname(&system), 0);
  EXPECT_EQ(facts.kernel, system.release);
  EXPECT_EQ(facts.name, system.nodename);
  EXPECT_EQ(facts.cores, ::get_nprocs());
  struct sysinfo memory {};
  ASSERT_EQ(::sysinfo(&memory), 0);
  EXPECT_EQ(facts.memory, static_cast<std::uint64_t>(memory.totalram) * memory.mem_unit);
  EXPECT_GT(facts.available, 0U);
  EXPECT_LE(facts.available, facts.memory);
  timespec wall{}, steady{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  ::clock_gettime(CLOCK_MONOTONIC, &steady);
  const double ahead = static_cast<double>(wall.tv_sec - steady.tv_sec) +
                       1e-9 * static_cast<double>(wall.tv_nsec - steady.tv_nsec);
  EXPECT_NEAR(1e-9 * static_cast<double>(facts.clock_ahead_ns), ahead, 0.05);
}

TEST_F(CheckFacts, OfDisksSayWhatIsFreeAndWhatCannotBeWritten) {
  const auto disks = disk_facts({folder_.path(), folder_ / "nowhere", "/proc", folder_.path()});
  ASSERT_EQ(disks.size(), 3U);
  struct statvfs system {};
  ASSERT_EQ(::statvfs(folder_.path().c_str(), &system), 0);
  EXPECT_EQ(disks[0].trouble, "");
  EXPECT_NEAR(static_cast<double>(disks[0].free_bytes),
              static_cast<double>(system.f_bavail) * static_cast<double>(system.f_frsize), 1e9);
  EXPECT_EQ(disks[1].trouble, "No such file or directory");
}

TEST_F(CheckFacts, KnowTheLimitsOfControlGroups) {
  put("proc/meminfo",
      "MemTotal:        8000000 kB\nMemAvailable:    6000000 kB\n"
      "SwapTotal:       2000000 kB\nSwapFree:        1500000 kB\n");
  put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2.4GHz\n");
  put("etc/os-release", "NAME=\"X\"\nPRETTY_NAME=\"CentOS Stream 9\"\n");
  MachineFacts facts = host();
  EXPECT_EQ(facts.available, std::uint64_t{6000000} * 1024);
  EXPECT_EQ(facts.swapped, std::uint64_t{500000} * 1024);
  EXPECT_EQ(facts.processor, "Some CPU @ 2.4GHz");
  EXPECT_EQ(facts.system, "CentOS Stream 9");
  EXPECT_FALSE(facts.quota.has_value());

  // Version 2 of the hierarchy: the tightest of all groups above counts.
  put("proc/self/cgroup", "0::/user.slice/one.scope\n");
  put("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  put("sys/fs/cgroup/user.slice/one.scope/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/user.slice/memory.max", "2147483648\n");
  put("sys/fs/cgroup/user.slice/memory.current", "1610612736\n");
  put("sys/fs/cgroup/user.slice/memory.stat", "anon 1\ninactive_file 536870912\n");
  put("sys/fs/cgroup/user.slice/one.scope/memory.max", "max\n");
  facts = host();
  ASSERT_TRUE(facts.quota.has_value());
  EXPECT_DOUBLE_EQ(*facts.quota, 1.5);
  EXPECT_EQ(facts.available, 1073741824U);

  // Version 1, as CentOS 7 has it.
  put("proc/self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/job\n");
  put("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
  put("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000000000\n");
  put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "400000000\n");
  facts = host();
  ASSERT_TRUE(facts.quota.has_value());
  EXPECT_DOUBLE_EQ(*facts.quota, 3.0);
  EXPECT_EQ(facts.available, 600000000U);
}

TEST_F(CheckFacts, NameWhatKeepsCoresBusy) {
  const auto process = [&](int number, const std::string& name, int user, int system) {
    put("proc/" + std::to_string(number) + "/stat",
        std::to_string(number) + " (" + name + ") S 1 1 1 0 -1 4194304 100 0 0 0 " +
            std::to_string(user) + " " + std::to_string(system) + " 0 0 20 0 1 0 55\n");
  };
  put("proc/stat", "cpu  1000 50 200 9000 10 5 5 7 0 0\ncpu0 1 2 3\n");
  process(10, "own", 100, 0);
  process(11, "fire fox) S 1", 500, 20);
  process(12, "idle", 5, 5);
  const LoadCount before(folder_.path());
  // Two seconds later, in ticks of which there are 100 a second.
  const long tick = ::sysconf(_SC_CLK_TCK);
  ASSERT_EQ(tick, 100);
  put("proc/stat", "cpu  1300 50 260 9040 10 5 5 27 0 0\n");
  process(10, "own", 160, 0);
  process(11, "fire fox) S 1", 700, 30);
  process(13, "new", 40, 0);
  MachineFacts facts;
  before.add_facts(facts, LoadCount(folder_.path()), 2.0, 10);
  EXPECT_DOUBLE_EQ(facts.busy, 1.5);    // 360 ticks less this process's 60, in 2 s.
  EXPECT_DOUBLE_EQ(facts.stolen, 0.1);  // 20 ticks.
  EXPECT_EQ(facts.busiest, "fire fox) S 1");
  EXPECT_DOUBLE_EQ(facts.busiest_cores, 1.05);
}

TEST_F(CheckFacts, OfGpusComeFromTheirDriver) {
  put("proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n"
      "GCC version:  gcc version 12.2.0\n");
  put("proc/driver/nvidia/gpus/0000:01:00.0/information",
      "Model: \t\t NVIDIA GeForce GTX 1080\nIRQ:   \t\t 38\n");
  MachineFacts facts;
  add_program_facts(facts, folder_.path());
  EXPECT_EQ(facts.driver, "535.183.01");
  ASSERT_EQ(facts.gpus.size(), 1U);
  EXPECT_EQ(facts.gpus[0], "NVIDIA GeForce GTX 1080");
  if (facts.usable_gpus == 0) {
    EXPECT_NE(facts.gpu_trouble, "");
  }
}

TEST_F(CheckFacts, OfInterfacesTellCablesFromOthers) {
  // The kernel links /sys/class/net/NAME to the device's folder.
  const auto interface = [&](const std::string& name, const std::string& device) {
    put(device + "/type", "1\n");
    put(device + "/mtu", "1500\n");
    put(device + "/statistics/rx_packets", "100000\n");
    put(device + "/statistics/tx_packets", "50000\n");
    put(device + "/statistics/rx_errors", "7\n");
    put(device + "/statistics/tx_errors", "2\n");
    fs::create_directories(folder_ / "class");
    fs::create_directory_symlink(folder_ / device, folder_ / ("class/" + name));
    return interface_facts(name, folder_ / ("class/" + name));
  };
  put("devices/pci0/net/eth0/speed", "100\n");
  put("devices/pci0/net/eth0/duplex", "half\n");
  const InterfaceFacts cable = interface("eth0", "devices/pci0/net/eth0");
  EXPECT_EQ(cable.kind, "wired");
  EXPECT_EQ(cable.mbit, 100);
  EXPECT_EQ(cable.duplex, "half");
  EXPECT_EQ(cable.mtu, 1500);
  EXPECT_EQ(cable.packets, 150000U);
  EXPECT_EQ(cable.errors, 9U);

  put("devices/pci0/net/wlan0/phy80211/name", "phy0\n");
  EXPECT_EQ(interface("wlan0", "devices/pci0/net/wlan0").kind, "wireless");

  // A veth has 10,000 Mbit/s for the asking.
  put("devices/virtual/net/veth0/speed", "10000\n");
  put("devices/virtual/net/veth0/duplex", "full\n");
  const InterfaceFacts made_up = interface("veth0", "devices/virtual/net/veth0");
  EXPECT_EQ(made_up.kind, "virtual");
  EXPECT_EQ(made_up.mbit, 0);
  EXPECT_EQ(made_up.duplex, "");

  // A cable that is not plugged in has a speed of -1, and duplex unknown.
  put("devices/pci0/net/eth1/speed", "-1\n");
  put("devices/pci0/net/eth1/duplex", "unknown\n");
  const InterfaceFacts loose = interface("eth1", "devices/pci0/net/eth1");
  EXPECT_EQ(loose.mbit, 0);
  EXPECT_EQ(loose.duplex, "");

  put("devices/virtual/net/bond0/bonding/mode", "802.3ad 4\n");
  put("devices/virtual/net/bond0/speed", "2000\n");
  EXPECT_EQ(interface("bond0", "devices/virtual/net/bond0").mbit, 2000);
}

/// A message of the kernel's answer to RTM_GETQDISC.
std::string queue_message(int interface, std::uint32_t handle, std::uint32_t parent,
                          const std::string& kind) {
  tcmsg queue{};
  queue.tcm_ifindex = interface;
  queue.tcm_handle = handle;
  queue.tcm_parent = parent;
  rtattr attribute{};
  attribute.rta_type = TCA_KIND;
  attribute.rta_len = static_cast<unsigned short>(sizeof attribute + kind.size() + 1);
  nlmsghdr head{};
  head.nlmsg_type = RTM_NEWQDISC;
  std::string body(reinterpret_cast<const char*>(&queue), sizeof queue);
  body.append(reinterpret_cast<const char*>(&attribute), sizeof attribute);
  body += kind + '\0';
  body.resize((body.size() + 3) / 4 * 4);
  head.nlmsg_len = static_cast<std::uint32_t>(sizeof head + body.size());
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + body;
}

TEST_F(CheckFacts, NameTheQueueOfEveryPartOfACard) {
  const std::string one = queue_message(3, 0, TC_H_ROOT, "pfifo_fast");
  const std::string other = queue_message(2, 0, TC_H_ROOT, "noqueue");
  QueueText text(3);
  EXPECT_FALSE(text.take((other + one).data(), other.size() + one.size()));
  EXPECT_EQ(text.str(), "pfifo_fast");

  std::string many = queue_message(3, 0x80010000U, TC_H_ROOT, "mq");
  for (std::uint32_t queue = 1; queue <= 8; ++queue)
    many += queue_message(3, 0, 0x80010000U + queue, queue == 5 ? "pfifo_fast" : "fq_codel");
  QueueText card(3);
  card.take(many.data(), many.size());
  EXPECT_EQ(card.str(), "mq of fq_codel and pfifo_fast");
  // Whatever comes, nothing outside of it is read.
  for (std::size_t cut = 0; cut <= many.size(); ++cut) {
    const std::vector<char> part(many.begin(), many.begin() + static_cast<std::ptrdiff_t>(cut));
    QueueText cut_off(3);
    cut_off.take(part.data(), part.size());
  }
  for (std::size_t at = 0; at < one.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<char> damaged(one.begin(), one.end());
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      QueueText(3).take(damaged.data(), damaged.size());
    }
  // Loopback has a queue of no length, wherever nobody has changed that.
  EXPECT_EQ(queue_of(std::stoi(read_text("/sys/class/net/lo/ifindex"))), "noqueue");
}

TEST_F(CheckFacts, SayWhatNamesStandFor) {
  MachineFacts facts;
  add_network_facts(facts, {{"127.0.0.1", {7117}}, {"no-such-host.invalid", {7117}}},
                    std::chrono::seconds(20));
  ASSERT_EQ(facts.routes.size(), 2U);
  EXPECT_EQ(facts.routes[0].address, "127.0.0.1");
  EXPECT_EQ(facts.routes[0].interface, "lo");
  EXPECT_EQ(facts.routes[0].trouble, "");
  EXPECT_EQ(facts.routes[1].address, "");
  EXPECT_NE(facts.routes[1].trouble, "");
  ASSERT_EQ(facts.interfaces.size(), 1U);
  EXPECT_EQ(facts.interfaces[0].kind, "loopback");
  EXPECT_NE(facts.congestion, "");
}

}  // namespace
}  // namespace duplex::tools::testing
