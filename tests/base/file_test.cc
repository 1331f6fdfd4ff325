#include "base/file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/folders.h"
#include "tests/support/temp_dir.h"

namespace mjp {
namespace {

namespace fs = std::filesystem;

class LinkTest : public ::testing::Test {
 protected:
  // Makes folder/link, which leads to `target` over a second link.
  std::string Link(const fs::path& target) const {
    fs::create_directory(folder_ / "there");
    fs::create_symlink(target, folder_ / "there/second");
    fs::create_symlink("there/second", folder_ / "link");
    return folder_ / "link";
  }
  const mjp_test::TempDir folder_;
};

TEST_F(LinkTest, IsKeptAndWhatItLeadsToIsWritten) {
  const std::string link = Link("../elsewhere/file");  // relative to the second link
  fs::create_directory(folder_ / "elsewhere");
  for (const std::string text : {"first", "second"}) {
    app::CheckWritable(link);
    app::WriteFileAtomically(link, text);
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_FALSE(fs::is_symlink(folder_ / "elsewhere/file"));
    EXPECT_EQ(app::ReadFile(folder_ / "elsewhere/file", 100), text);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "elsewhere"), {}), 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 3);
}

TEST_F(LinkTest, ToAFolderThatIsNotThereIsAnError) {
  const std::string link = Link(folder_ / "nowhere/file");
  EXPECT_THROW(app::CheckWritable(link), Error);
  EXPECT_THROW(app::WriteFileAtomically(link, "text"), Error);
  EXPECT_TRUE(fs::is_symlink(link));
}

TEST_F(LinkTest, InACircleIsReplaced) {
  const std::string link = Link("../link");
  app::WriteFileAtomically(link, "text");
  EXPECT_EQ(app::ReadFile(FollowLinks(link), 100), "text");
}

}  // namespace
}  // namespace mjp
