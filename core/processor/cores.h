// The processor's cores, dealt out to parts of the program that compute side by side.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace duplex {

/// The numbers of the cores that the calling thread may use, as the system counts them (hardware
/// threads count as cores).
std::vector<int> own_cores();

/// Returns the cores in the order in which they lie together: by NUMA node, and within it the
/// hardware threads of one core side by side. `system` is the folder in which the kernel tells of
/// them; cores of which it tells nothing count as one node, and as one core each.
std::vector<int> in_order(const std::vector<int>& cores,
                          const std::string& system = "/sys/devices/system");

/// Deals out `cores` to `parts` parts, each a run of them, as even as can be: the first parts have
/// one more. There are as many cores as parts at least.
std::vector<std::vector<int>> core_shares(const std::vector<int>& cores, std::size_t parts);

/// Lets the calling thread, and threads that it starts from now on, use these cores alone. Does
/// nothing where the system refuses that, or for no cores.
void bind_thread(const std::vector<int>& cores);

/// Runs `work` in a thread of its own that is bound to these cores, so that the threads which a
/// computation starts are, too. Returns when it is done, or throws what it throws.
void run_bound(const std::vector<int>& cores, const std::function<void()>& work);

}  // namespace duplex
