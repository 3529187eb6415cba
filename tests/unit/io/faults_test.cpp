// What file systems do that the one under the tests does not: the system calls are replaced for this test program and
// behave as told.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>

#include "lancet/checkpoint/checkpoint_export.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/output_folder.h"
#include "support/io_support.h"

namespace {

int renameat2_error = 0;         // 0: the real call
int copy_error = 0;              // 0: the real call
size_t largest_copy = SIZE_MAX;  // bytes per call
std::atomic<int> copies_before_error{0};
bool clones = false;  // FICLONE does what it does on btrfs; else the real call
std::atomic<int> clones_made{0};
std::atomic<size_t> copied_bytes{0};
int write_out_error = 0;  // of sync_file_range; 0: the real call
int sync_error = 0;       // of fsync; 0: the real call

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
  const ssize_t copied =
      ::syscall(SYS_copy_file_range, from, from_offset, to, to_offset, std::min(length, largest_copy), flags);
  if (copied > 0) copied_bytes += static_cast<size_t>(copied);
  return copied;
}

extern "C" int ioctl(int descriptor, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  const auto argument = va_arg(arguments, unsigned long);
  va_end(arguments);
  if (request != FICLONE || !clones) return static_cast<int>(::syscall(SYS_ioctl, descriptor, request, argument));
  struct stat status {};
  ::fstat(static_cast<int>(argument), &status);
  off64_t from_offset = 0, to_offset = 0;  // a clone leaves the file position where it is
  while (from_offset < status.st_size)
    if (::syscall(SYS_copy_file_range, argument, &from_offset, descriptor, &to_offset, status.st_size, 0) <= 0)
      return -1;
  ++clones_made;
  return 0;
}

extern "C" int sync_file_range(int descriptor, off64_t offset, off64_t length, unsigned flags) {
  if (write_out_error == 0) return static_cast<int>(::syscall(SYS_sync_file_range, descriptor, offset, length, flags));
  errno = write_out_error;
  return -1;
}

extern "C" int fsync(int descriptor) {
  if (sync_error == 0) return static_cast<int>(::syscall(SYS_fsync, descriptor));
  errno = sync_error;
  return -1;
}

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

constexpr OutputKind kKind{"edit"};

class FaultsTest : public ::testing::Test {
 protected:
  void TearDown() override {
    renameat2_error = 0;
    copy_error = 0;
    largest_copy = SIZE_MAX;
    copies_before_error = 0;
    clones = false;
    clones_made = 0;
    copied_bytes = 0;
    write_out_error = 0;
    sync_error = 0;
  }

  static std::string some_bytes(int count, int seed) {
    std::string bytes;
    for (int i = 0; i < count; ++i) bytes += static_cast<char>((i + seed) * 11);
    return bytes;
  }

  /// A shard of three tensors of 3000 bytes; `w` is the middle one.
  static std::string shard_bytes(const std::string& prefix, std::string_view metadata, std::string_view middle) {
    const auto entry = [&](std::string_view name, int begin) {
      return cat(R"(,")", prefix, name, R"(":{"dtype":"U8","shape":[3000],"data_offsets":[)", begin, ",", begin + 3000,
                 "]}");
    };
    std::string header = cat("{", metadata, entry("u", 0), entry("v", 3000), entry("w", 6000), "}");
    if (metadata.empty()) header.erase(1, 1);  // the comma
    while (header.size() % 8 != 0) header += ' ';
    return safetensors_bytes(header, cat(some_bytes(3000, 1), middle, some_bytes(3000, 3)));
  }

  /// Exports a model of three shards, of which the first keeps its bytes, the second has its middle tensor replaced,
  /// and the third has that and no `format`; compares every file byte by byte.
  void export_and_compare() {
    constexpr const char* kFormat = R"("__metadata__":{"format":"pt"})";
    const std::string old_bytes = some_bytes(3000, 2), new_bytes = some_bytes(3000, 99);
    const TempDir dir;
    std::string index = R"({"weight_map":{)";
    for (const std::string shard : {"a", "b", "c"}) {
      for (const std::string tensor : {"u", "v", "w"})
        index += cat(index.back() == '{' ? "" : ",", "\"", shard, tensor, "\":\"", shard, ".safetensors\"");
      write_bytes(dir / "base" / (shard + ".safetensors"), shard_bytes(shard, shard == "c" ? "" : kFormat, old_bytes));
    }
    write_bytes(dir / "base" / "model.safetensors.index.json", index + "}}");
    write_bytes(dir / "base" / "config.json", "{}");
    fs::create_directory(dir / "target");
    const std::vector<TensorSource> replaced{{"cv", DType::kU8, {3000}, bytes_of(new_bytes)},
                                             {"bv", DType::kU8, {3000}, bytes_of(new_bytes)}};
    export_checkpoint(Checkpoint::open(dir / "base"), {.replaced = replaced}, dir / "target");
    EXPECT_EQ(read_bytes(dir / "target" / "a.safetensors"), shard_bytes("a", kFormat, old_bytes));
    EXPECT_EQ(read_bytes(dir / "target" / "b.safetensors"), shard_bytes("b", kFormat, new_bytes));
    EXPECT_EQ(read_bytes(dir / "target" / "c.safetensors"), shard_bytes("c", kFormat, new_bytes));
    EXPECT_EQ(read_bytes(dir / "target" / "config.json"), "{}");
    for (const std::string shard : {"b", "c"})  // the base keeps its own
      EXPECT_EQ(read_bytes(dir / "base" / (shard + ".safetensors")),
                shard_bytes(shard, shard == "c" ? "" : kFormat, old_bytes));
  }

  /// Exports a model of one shard whose middle tensor gives way to another, and compares the file byte by byte.
  static void exchange_and_compare() {
    const std::string new_bytes = some_bytes(6000, 7);
    const TempDir dir;
    write_bytes(dir / "base" / "model.safetensors",
                shard_bytes("", R"("__metadata__":{"format":"pt"})", some_bytes(3000, 2)));
    write_bytes(dir / "base" / "config.json", "{}");
    fs::create_directory(dir / "target");
    const std::vector<TensorExchange> exchanged{
        {.removed = {"v"}, .added = {{"n", DType::kU16, {3000}, bytes_of(new_bytes)}}}};
    export_checkpoint(Checkpoint::open(dir / "base"), {.exchanged = exchanged}, dir / "target");
    std::string header = R"({"__metadata__":{"format":"pt"},"u":{"dtype":"U8","shape":[3000],"data_offsets":[0,3000]},)"
                         R"("n":{"dtype":"U16","shape":[3000],"data_offsets":[3000,9000]},)"
                         R"("w":{"dtype":"U8","shape":[3000],"data_offsets":[9000,12000]}})";
    while (header.size() % 8 != 0) header += ' ';
    EXPECT_EQ(read_bytes(dir / "target" / "model.safetensors"),
              safetensors_bytes(header, cat(some_bytes(3000, 1), new_bytes, some_bytes(3000, 3))));
  }
};

TEST_F(FaultsTest, CopiesInTheKernelAllButWhatIsReplaced) {
  copied_bytes = 0;  // other tests of the process copy too
  export_and_compare();
  // three shards' data but two tensors, two headers, index and config
  const size_t head = shard_bytes("a", R"("__metadata__":{"format":"pt"})", some_bytes(3000, 2)).size() - 9000;
  EXPECT_GE(copied_bytes, 27000 - 6000 + 2 * head);
  EXPECT_LT(copied_bytes, 27000);
}

TEST_F(FaultsTest, WritesOverClonesWhereTheFileSystemMakesThem) {
  clones = true;
  export_and_compare();
  EXPECT_EQ(clones_made, 2);  // the third shard has another header
}

TEST_F(FaultsTest, NeedsNoEarlyWritingOut) {
  for (const int error_number : {ENOSYS, ESPIPE, EIO}) {
    write_out_error = error_number;
    export_and_compare();
  }
}

TEST_F(FaultsTest, ReportsADiskThatFailsAtTheEnd) {
  sync_error = EIO;
  expect_says(message_of<CheckpointError>([&] { export_and_compare(); }),
              {"target/", "cannot write to the disk", "Input/output error"});
}

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
              {"target/", ".safetensors", "No space left", "free some space"});
}

TEST_F(FaultsTest, ExchangesTensorsHoweverTheKernelCopies) {
  exchange_and_compare();
  EXPECT_GE(copied_bytes, 6000U);  // what is kept
  clones = true;
  exchange_and_compare();
  EXPECT_EQ(clones_made, 0);  // the layout is another
  largest_copy = 1000;
  exchange_and_compare();
  copy_error = EXDEV;
  copies_before_error = 2;
  exchange_and_compare();
}

TEST_F(FaultsTest, ReportsAFullDiskWhileExchangingTensors) {
  copy_error = ENOSPC;
  expect_says(message_of<CheckpointError>([] { exchange_and_compare(); }), {"model.safetensors", "No space left"});
}

TEST_F(FaultsTest, RenamesInStepsWhereTheFileSystemCannotExchange) {
  for (const int error_number : {EINVAL, ENOSYS}) {
    renameat2_error = error_number;
    const TempDir dir;
    for (const std::string text : {"first", "second"}) {  // new, then replaced
      OutputFolder output(dir / "out", IfExists::kReplace, kKind);
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
  write_bytes(dir / "out" / "lancet-manifest.json",
              R"({"format":"lancet-manifest-1","holds":"edit","files":["marker"]})");
  {
    OutputFolder output(dir / "out", IfExists::kReplace, kKind);
    write_bytes(output.staging() / "marker", "new");
    renameat2_error = EBUSY;
    expect_says(message_of<CheckpointError>([&] { output.commit(); }), {(dir / "out").string(), "busy"});
  }
  EXPECT_EQ(read_bytes(dir / "out" / "marker"), "old");
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"out"});
}

}  // namespace
}  // namespace lancet
