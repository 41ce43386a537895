// The curves that a training shows on a terminal at its end.
#pragma once
#include <string>

#include "tools/display/display.h"

namespace duplex::tools {

/// Returns charts of the loss, and of top-1 where there were several tests, by the files that the
/// run has left in `directory`; "" where they have nothing to draw, or cannot be read.
std::string learning_curves(const std::string& directory, const Display& display);

/// Shows them where the display is a terminal.
void show_learning_curves(const std::string& directory, const Display& display);

}  // namespace duplex::tools
