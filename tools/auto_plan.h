// The plan that `launch --plan auto` makes before the ranks start.
#pragma once
#include "tools/deploy/deployment.h"
#include "tools/flags/launch_flags.h"

namespace duplex::tools {

/// Has `plan` measure the machines and write the best way, unless it has just answered the same
/// question. Sets flags.plan to the plan's file and flags.nodefile to the nodefile that goes with
/// it, and removes the flags of dist that the plan gives. `deployment`: what has put the program
/// onto the machines; none: they have it. Throws Error where it does not pay.
void make_plan(LaunchFlags& flags, const Deployment* deployment);

}  // namespace duplex::tools
