// Tests the text of the bar, which has to fit a line of any width, and what launch makes of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/error.h"
#include "tools/display/display.h"
#include "tools/display/progress.h"
#include "tools/display/progress_bar.h"
#include "tools/display/status_line.h"

namespace duplex::tools {
namespace {

TrainingProgress half_way() {
  TrainingProgress progress;
  progress.done = 9375;
  progress.steps = 18750;
  progress.epoch = 5;
  progress.loss = 0.43214;
  progress.top1 = 0.8525;
  progress.images = 4321.4;
  progress.left = 75.9;
  progress.memory_bytes = std::uint64_t{512} << 20;
  return progress;
}

/// A terminal of eighty columns has a line of 79; a wider one has the epoch, too.
TEST(ProgressBar, SaysAllOnEightyColumns) {
  const std::string figures = " loss 0.4321 top-1 85.2% 4,321 images/s 1:15 left 512 MiB";
  EXPECT_EQ(progress_bar(half_way(), 79), "[===>  ]  9,375/18,750" + figures);
  EXPECT_EQ(progress_bar(half_way(), 99), "[=========>        ]  9,375/18,750 epoch 5" + figures);
  EXPECT_EQ(progress_bar(half_way(), 60),
            "[=====>    ]  9,375/18,750 loss 0.4321 top-1 85.2% 1:15 left");
  EXPECT_EQ(progress_bar(half_way(), 20), " 9,375/18,750");
  EXPECT_EQ(progress_bar(half_way(), 5), " 9,37");
}

TEST(ProgressBar, FitsEveryWidth) {
  TrainingProgress progress = half_way();
  for (const std::uint64_t done : {0U, 1U, 9375U, 18749U, 18750U}) {
    progress.done = done;
    for (std::size_t width = 19; width < 250; ++width) {
      const std::string line = progress_bar(progress, width);
      EXPECT_LE(line.size(), width);
      EXPECT_NE(line.find("/18,750"), std::string::npos) << line;
      // The bar takes what the rest leaves.
      if (line[0] == '[') {
        EXPECT_EQ(line.size(), width) << line;
      } else {
        EXPECT_LT(width, 8U + 14U) << line;
      }
    }
  }
}

TEST(ProgressBar, GrowsWithTheSteps) {
  TrainingProgress progress;
  progress.steps = 4;
  progress.epoch = 0;
  const auto bar = [&](std::uint64_t done) {
    progress.done = done;
    const std::string line = progress_bar(progress, 40);
    return line.substr(0, line.find(']') + 1);
  };
  const std::size_t inner = bar(4).size() - 2;
  EXPECT_EQ(bar(4), "[" + std::string(inner, '=') + "]");
  EXPECT_EQ(bar(0), "[>" + std::string(inner - 1, ' ') + "]");
  std::size_t before = 0;
  for (const std::uint64_t done : {1U, 2U, 3U}) {
    const std::string shown = bar(done);
    const auto full = static_cast<std::size_t>(std::count(shown.begin(), shown.end(), '='));
    EXPECT_EQ(full, done * inner / 4) << shown;
    EXPECT_GT(full, before);
    before = full;
  }
}

/// A replay has no loss, a GPU counts no hits, and a loss may grow beyond all measure.
TEST(ProgressBar, LeavesOutWhatIsNotKnown) {
  TrainingProgress progress = half_way();
  progress.loss.reset();
  progress.top1.reset();
  progress.memory_bytes = 0;
  const std::string line = progress_bar(progress, 120);
  for (const char* what : {"loss", "top-1", "MiB"})
    EXPECT_EQ(line.find(what), std::string::npos) << line;
  progress.loss = 1.234e30;
  EXPECT_NE(progress_bar(progress, 120).find("loss 1.23e+30 "), std::string::npos);
}

TEST(Display, GoesFromLaunchToItsRanks) {
  for (const bool utf8 : {false, true}) {
    const Display display = Display::launched(Display{Display::Kind::launched, 97, utf8}.word());
    EXPECT_EQ(display.kind, Display::Kind::launched);
    EXPECT_EQ(display.width(), 96U);
    EXPECT_EQ(display.utf8, utf8);
  }
  EXPECT_EQ(Display::launched("lines").kind, Display::Kind::lines);
  EXPECT_EQ(Display::launched(Display::quiet().word()).kind, Display::Kind::lines);
  for (const char* word : {"", "x", "80,", "80,utf-16", "-3", "99999"})
    EXPECT_THROW(Display::launched(word), Error) << word;
}

/// Pieces are whole wherever the pipe has cut them.
TEST(StatusLine, FindsLinesThatAreRewritten) {
  const std::string written = std::string("rank 0\n") + rewriting + "[=>  ] 1/3" + rewritten +
                              rewriting + "[==> ] 2/3" + rewritten + "\n" + rewriting + rewritten +
                              "plain\r\n";
  for (std::size_t cut = 0; cut <= written.size(); ++cut) {
    std::string text, found;
    Piece piece;
    for (const std::string& part : {written.substr(0, cut), written.substr(cut)}) {
      text += part;
      while (take_piece(text, piece))
        found += (piece.kind == Piece::Kind::line ? "line " : "over ") + piece.text + "|";
    }
    EXPECT_EQ(found, "line rank 0|over [=>  ] 1/3|over [==> ] 2/3|line |over |line plain\r|");
    EXPECT_EQ(text, "");
  }
}

}  // namespace
}  // namespace duplex::tools
