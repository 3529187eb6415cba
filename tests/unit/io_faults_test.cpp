// What file systems do that the one under the tests does not: the system calls are replaced for this test program and
// behave as told.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "io_support.h"
#include "lancet/core/error.h"
#include "lancet/io/checkpoint.h"
#include "lancet/io/output_folder.h"

namespace {

int renameat2_error = 0;         // 0: the real call
int copy_error = 0;              // 0: the real call
size_t largest_copy = SIZE_MAX;  // bytes per call
int copies_before_error = 0;

}  // namespace

extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  if (renameat2_error != 0) {
    errno = renameat2_error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

extern "C" ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t length,
                                   unsigned flags) {
  if (copy_error != 0 && copies_before_error-- <= 0) {
    errno = copy_error;
    return -1;
  }
  return ::syscall(SYS_copy_file_range, from, from_offset, to, to_offset, std::min(length, largest_copy), flags);
}

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

class FaultsTest : public ::testing::Test {
 protected:
  void TearDown() override {
    renameat2_error = 0;
    copy_error = 0;
    largest_copy = SIZE_MAX;
    copies_before_error = 0;
  }

  /// Exports a one-tensor model and compares it byte by byte.
  void export_and_compare() {
    std::string header =
        R"({"__metadata__":{"format":"pt"},"w":{"dtype":"U8","shape":[3000],"data_offsets":[0,3000]}})";
    std::string data;
    for (int i = 0; i < 3000; ++i) data += static_cast<char>(i * 11);
    const TempDir dir;
    write_bytes(dir / "base" / "config.json", "{}");
    write_bytes(dir / "base" / "model.safetensors", safetensors_bytes(header, data));
    fs::create_directory(dir / "target");
    export_checkpoint(Checkpoint::open(dir / "base"), {}, dir / "target");
    EXPECT_EQ(read_bytes(dir / "target" / "model.safetensors"), safetensors_bytes(header, data));
    EXPECT_EQ(read_bytes(dir / "target" / "config.json"), "{}");
  }
};

TEST_F(FaultsTest, CopiesOnAfterShortCopies) {
  largest_copy = 1000;
  export_and_compare();
}

TEST_F(FaultsTest, CopiesThroughMemoryWhereTheKernelCannot) {
  for (const int error_number : {EXDEV, EINVAL, ENOSYS, EOPNOTSUPP, EPERM}) {
    copy_error = error_number;
    copies_before_error = 0;
    export_and_compare();
  }
}

TEST_F(FaultsTest, CopiesOnThroughMemoryWhenTheKernelStopsHalfWay) {
  largest_copy = 1000;
  copy_error = EXDEV;
  copies_before_error = 2;
  export_and_compare();
}

TEST_F(FaultsTest, TakesAnEndReportedTooEarlyForNoEnd) {
  largest_copy = 0;
  export_and_compare();
}

TEST_F(FaultsTest, ReportsAFullDiskWhileCopying) {
  copy_error = ENOSPC;
  expect_says(message_of<CheckpointError>([&] { export_and_compare(); }),
              {"target/model.safetensors", "No space left", "free some space"});
}

TEST_F(FaultsTest, RenamesInStepsWhereTheFileSystemCannotExchange) {
  for (const int error_number : {EINVAL, ENOSYS}) {
    renameat2_error = error_number;
    const TempDir dir;
    for (const std::string text : {"first", "second"}) {  // new, then replaced
      OutputFolder output(dir / "out", IfExists::kReplace, "marker");
      write_bytes(output.staging() / "marker", text);
      output.commit();
      EXPECT_EQ(read_bytes(dir / "out" / "marker"), text);
    }
    EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"out"});
  }
}

TEST_F(FaultsTest, KeepsTheOldFolderWhenTheNewOneCannotTakeItsPlace) {
  const TempDir dir;
  write_bytes(dir / "out" / "marker", "old");
  {
    OutputFolder output(dir / "out", IfExists::kReplace, "marker");
    write_bytes(output.staging() / "marker", "new");
    renameat2_error = EBUSY;
    expect_says(message_of<CheckpointError>([&] { output.commit(); }), {(dir / "out").string(), "busy"});
  }
  EXPECT_EQ(read_bytes(dir / "out" / "marker"), "old");
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"out"});
}

}  // namespace
}  // namespace lancet
