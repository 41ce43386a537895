// Tests folders of images: which files count, which are skipped, and which are an error.
#include "datasets/folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "tests/datasets/files.h"

namespace duplex::datasets {
namespace {

using testing::Bytes;
using testing::draw_png;
using testing::error_of;
using testing::recorded;
using testing::write_bytes;

DatasetOptions small(bool strict = false) {
  DatasetOptions options;
  options.height = 20;
  options.width = 24;
  options.strict = strict;
  options.threads = 2;
  return options;
}

std::string refusal(const std::string& path, bool strict = false) {
  return error_of([&] { open_dataset(path, small(strict)); });
}

/// Writes three sound images in two classes: colour and grey, JPEG and PNG, of several sizes.
void write_sound(const TemporaryFolder& folder) {
  write_bytes(folder / "002.american-flag/002_0001.jpg", recorded("large.jpg"));
  write_bytes(folder / "001.ak47/001_0002.png", draw_png(33, 70, 2));
  write_bytes(folder / "001.ak47/001_0001.JPG", recorded("grey.jpg"));
}

Bytes cut(Bytes file, double share) {
  file.resize(static_cast<std::size_t>(static_cast<double>(file.size()) * share));
  return file;
}

std::vector<std::string> names(const std::vector<LeftOut>& list) {
  std::vector<std::string> result;
  for (const LeftOut& entry : list) result.push_back(entry.name);
  return result;
}

TEST(Folder, ReadsClassesInOrderOfTheirNames) {
  const TemporaryFolder folder;
  write_sound(folder);
  const auto data = open_dataset(folder.path(), small(true));
  ASSERT_EQ(data->size(), 3u);
  EXPECT_EQ(data->shape(), (Shape{1, 3, 20, 24}));
  EXPECT_EQ(data->classes(), (std::vector<std::string>{"001.ak47", "002.american-flag"}));
  EXPECT_EQ(data->sample(0).name, "001.ak47/001_0001.JPG");
  EXPECT_EQ(data->sample(2).name, "002.american-flag/002_0001.jpg");
  EXPECT_EQ(data->sample(1).label, 0);
  EXPECT_EQ(data->sample(2).label, 1);
  EXPECT_EQ(data->sample(2).source_bytes, recorded("large.jpg").size());
  EXPECT_EQ(data->description(),
            "3 images of 3x20x24 in 2 classes, from the folder '" + folder.path() + "'");
}

TEST(Folder, GreyImagesBecomeColour) {
  const TemporaryFolder folder;
  write_sound(folder);
  const auto data = open_dataset(folder.path(), small());
  Bytes pixels(data->sample_bytes());
  ASSERT_EQ(data->read(0, pixels.data()), pixels.data());
  const auto plane = static_cast<std::ptrdiff_t>(pixels.size() / 3);
  EXPECT_TRUE(std::equal(pixels.begin(), pixels.begin() + plane, pixels.begin() + plane));
  EXPECT_TRUE(std::equal(pixels.begin(), pixels.begin() + plane, pixels.begin() + 2 * plane));
  EXPECT_NE(*std::max_element(pixels.begin(), pixels.end()),
            *std::min_element(pixels.begin(), pixels.end()));
}

TEST(Folder, DefaultIsColourOf224) {
  const TemporaryFolder folder;
  write_sound(folder);
  EXPECT_EQ(open_dataset(folder.path())->shape(), (Shape{1, 3, 224, 224}));
  DatasetOptions grey;
  grey.channels = 1;
  EXPECT_EQ(open_dataset(folder.path(), grey)->shape(), (Shape{1, 1, 224, 224}));
  grey.channels = 2;
  EXPECT_NE(error_of([&] { open_dataset(folder.path(), grey); }), "");
}

TEST(Folder, SkipsDamagedImagesByNameOrRefusesThemIfStrict) {
  const TemporaryFolder folder;
  write_sound(folder);
  write_bytes(folder / "001.ak47/a.jpg", cut(recorded("large.jpg"), 0.6));
  write_bytes(folder / "001.ak47/b.png", cut(draw_png(200, 100, 4), 0.6));
  write_bytes(folder / "001.ak47/c.jpg", {'h', 'e', 'l', 'l', 'o'});
  write_bytes(folder / "001.ak47/d.png", {});
  write_bytes(folder / "001.ak47/e.gif", {'G', 'I', 'F', '8', '9', 'a', 0, 0});
  const auto data = open_dataset(folder.path(), small());
  EXPECT_EQ(data->size(), 3u);
  const std::vector<LeftOut>& skipped = data->catalogue().skipped;
  ASSERT_EQ(names(skipped),
            (std::vector<std::string>{"001.ak47/a.jpg", "001.ak47/b.png", "001.ak47/c.jpg",
                                      "001.ak47/d.png", "001.ak47/e.gif"}));
  EXPECT_EQ(skipped[0].reason, "the JPEG is truncated");
  EXPECT_EQ(skipped[1].reason, "the PNG is truncated");
  EXPECT_EQ(skipped[2].reason, "it is neither a JPEG nor a PNG");
  EXPECT_EQ(skipped[3].reason, "it is empty");
  EXPECT_EQ(skipped[4].reason, "it is a GIF, not a JPEG or PNG");
  EXPECT_EQ(refusal(folder.path(), true),
            "image '" + folder / "001.ak47/a.jpg" + "' cannot be read: the JPEG is truncated");
}

TEST(Folder, IgnoresWhatIsNoImage) {
  const TemporaryFolder folder;
  write_sound(folder);
  for (const char* name : {"001.ak47/Thumbs.db", "001.ak47/.DS_Store", "001.ak47/RENAME2",
                           "001.ak47/greg/x.jpg", "readme.txt", ".hidden/x.jpg"}) {
    write_bytes(folder / name, {1, 2, 3});
  }
  const auto data = open_dataset(folder.path(), small(true));
  EXPECT_EQ(data->size(), 3u);
  std::vector<std::string> ignored = names(data->catalogue().ignored);
  std::sort(ignored.begin(), ignored.end());
  EXPECT_EQ(ignored,
            (std::vector<std::string>{".hidden", "001.ak47/.DS_Store", "001.ak47/RENAME2",
                                      "001.ak47/Thumbs.db", "001.ak47/greg", "readme.txt"}));
}

TEST(Folder, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  EXPECT_NE(refusal(folder / "nowhere").find("nowhere': No such file or directory; understood are"),
            std::string::npos);
  EXPECT_NE(refusal(folder.path()).find("holds no class folders"), std::string::npos);
  write_bytes(folder / "image.jpg", recorded("baseline.jpg"));
  EXPECT_NE(refusal(folder.path()).find("holds no class folders"), std::string::npos);
  EXPECT_NE(refusal(folder / "image.jpg").find("is not recognised; understood are"),
            std::string::npos);
  write_sound(folder);
  std::filesystem::create_directory(folder / "003.backpack");
  EXPECT_EQ(refusal(folder.path()), "class folder '" + folder / "003.backpack" +
                                        "' holds no images; put some in or remove it");
  write_bytes(folder / "003.backpack/x.jpg", {1, 2, 3});
  EXPECT_EQ(refusal(folder.path()),
            "class folder '" + folder / "003.backpack" + "' holds no image that can be read");
}

TEST(Folder, HintsAtTheFolderThatWasMeant) {
  const TemporaryFolder folder;
  write_bytes(folder / "256_ObjectCategories/001.ak47/001_0001.jpg", recorded("baseline.jpg"));
  EXPECT_NE(refusal(folder.path())
                .find("is '" + folder / "256_ObjectCategories" + "' the folder of classes"),
            std::string::npos);
}

TEST(Folder, LinksAreImagesUnlessTheyLeadNowhereOrInCircles) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder, other;
  write_sound(folder);
  write_bytes(other / "real/x.jpg", recorded("progressive.jpg"));
  fs::create_directory_symlink(other / "real", folder / "003.linked");
  fs::create_symlink(other / "real/x.jpg", folder / "001.ak47/linked.jpg");
  fs::create_symlink("nowhere.jpg", folder / "001.ak47/dangling.jpg");
  fs::create_symlink("circle.jpg", folder / "001.ak47/circle.jpg");
  fs::create_directory_symlink("circle", folder / "circle");
  fs::create_directory_symlink("..", folder / "001.ak47/up");
  const auto data = open_dataset(folder.path(), small());
  EXPECT_EQ(data->size(), 5u);
  EXPECT_EQ(data->classes().size(), 3u);
  std::vector<std::string> skipped = names(data->catalogue().skipped);
  std::sort(skipped.begin(), skipped.end());
  EXPECT_EQ(skipped,
            (std::vector<std::string>{"001.ak47/circle.jpg", "001.ak47/dangling.jpg", "circle"}));
}

TEST(Folder, APipeDoesNotStopIt) {
  const TemporaryFolder folder;
  write_sound(folder);
  ASSERT_EQ(::mkfifo((folder / "001.ak47/pipe.jpg").c_str(), 0600), 0);
  const auto data = open_dataset(folder.path(), small());
  ASSERT_EQ(data->catalogue().skipped.size(), 1u);
  EXPECT_EQ(data->catalogue().skipped[0].reason, "it is not a regular file");
}

/// While it lives, this process is not root, who may read everything, but a user who owns `folder`.
class Unprivileged {
 public:
  explicit Unprivileged(const std::string& folder) {
    constexpr uid_t nobody = 65534;
    if (::geteuid() != 0) return;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (::chown(entry.path().c_str(), nobody, nobody) != 0) return;
    }
    if (::chown(folder.c_str(), nobody, nobody) == 0) changed_ = ::seteuid(nobody) == 0;
  }
  ~Unprivileged() {
    if (changed_ && ::seteuid(0) != 0) std::abort();
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  bool changed_ = false;
};

TEST(Folder, UnreadableFoldersAndImages) {
  const TemporaryFolder folder;
  write_sound(folder);
  write_bytes(folder / "pack", {1, 2, 3});
  const Unprivileged user(folder.path());
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything, and cannot stop being root here";
  ASSERT_EQ(::chmod((folder / "001.ak47/001_0002.png").c_str(), 0), 0);
  const auto data = open_dataset(folder.path(), small());
  ASSERT_EQ(data->catalogue().skipped.size(), 1u);
  EXPECT_EQ(data->catalogue().skipped[0].reason, "Permission denied");
  ASSERT_EQ(::chmod((folder / "001.ak47").c_str(), 0), 0);
  EXPECT_EQ(refusal(folder.path()),
            "folder '" + folder / "001.ak47" + "' cannot be read: Permission denied");
  ASSERT_EQ(::chmod((folder / "001.ak47").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((folder / "pack").c_str(), 0), 0);
  EXPECT_EQ(refusal(folder / "pack"),
            "data set '" + folder / "pack" + "' cannot be read: Permission denied");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0), 0);
  EXPECT_NE(refusal(folder / "001.ak47").find("001.ak47': Permission denied; understood are"),
            std::string::npos);
  EXPECT_EQ(refusal(folder.path()),
            "folder '" + folder.path() + "' cannot be read: Permission denied");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0700), 0);
}

TEST(Folder, AllRanksSeeTheSameDigest) {
  const TemporaryFolder one, two;
  write_sound(one);
  write_sound(two);
  const std::uint64_t digest = open_dataset(one.path(), small())->digest();
  EXPECT_EQ(open_dataset(two.path(), small())->digest(), digest);
  EXPECT_NE(open_dataset(two.path())->digest(), digest) << "another size";
  write_bytes(two / "001.ak47/001_0002.png", draw_png(33, 71, 2));
  EXPECT_NE(open_dataset(two.path(), small())->digest(), digest) << "another image";
  write_sound(two);
  // Another image in a file of the same name and size.
  Bytes bytes = recorded("grey.jpg");
  bytes[bytes.size() / 2] ^= 1;
  write_bytes(two / "001.ak47/001_0001.JPG", bytes);
  EXPECT_NE(open_dataset(two.path(), small())->digest(), digest) << "another content";
  write_sound(two);
  std::filesystem::rename(two / "002.american-flag", two / "002.american_flag");
  EXPECT_NE(open_dataset(two.path(), small())->digest(), digest) << "another class";
}

}  // namespace
}  // namespace duplex::datasets
