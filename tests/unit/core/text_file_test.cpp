#include "lancet/core/text_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "support/temp_dir.h"

namespace lancet {
namespace {

using testing::TempDir;

std::string problem_with(const std::filesystem::path& path, uint64_t most_bytes = 100) {
  try {
    load_text(path, most_bytes);
  } catch (const FileProblem& problem) {
    return problem.what();
  }
  return "none";
}

TEST(TextFile, IsRefusedWhereItIsNone) {
  const TempDir dir;
  EXPECT_EQ(problem_with(dir / "absent"), "No such file or directory");
  EXPECT_EQ(problem_with(dir.path()), "is a folder, expected a file");
  EXPECT_NE(problem_with("/dev/zero").find("is a pipe or a device"), std::string::npos);
  EXPECT_THROW(OpenFile("/dev/zero"), FileProblem);
}

TEST(TextFile, WithoutAWriterDoesNotHang) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_NE(problem_with(dir / "pipe").find("is a pipe or a device, expected a regular file"), std::string::npos);
  std::filesystem::create_symlink(dir / "pipe", dir / "link");
  EXPECT_THROW(OpenFile(dir / "link"), FileProblem);
}

TEST(TextFile, OfTheProcessItselfMayBeAPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "abc", 3), 3);
  ::close(ends[1]);
  EXPECT_EQ(load_text("/dev/fd/" + std::to_string(ends[0]), 100), "abc");
  ::close(ends[0]);
}

TEST(TextFile, IsReadUpToItsLimit) {
  const TempDir dir;
  std::ofstream(dir / "f") << std::string(100, 'x');
  EXPECT_EQ(load_text(dir / "f", 100), std::string(100, 'x'));
  EXPECT_EQ(problem_with(dir / "f", 99),
            "expected at most 99 B, got 100 B; divide the file, or check that it is the right one");
  // no size is known beforehand
  const int zeros = ::open("/dev/zero", O_RDONLY);
  EXPECT_NE(problem_with("/dev/fd/" + std::to_string(zeros), 1'000'000).find("at most 1.0 MB, got more"),
            std::string::npos);
  ::close(zeros);
}

}  // namespace
}  // namespace lancet
