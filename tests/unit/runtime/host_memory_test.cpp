#include "lancet/runtime/memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "support/byte_units.h"
#include "support/temp_dir.h"

namespace lancet {
namespace {

using testing::kGiB;

/// A machine of 64 GiB, 40 of them available, as files.
class HostMemoryFiles : public ::testing::Test {
 protected:
  HostMemoryFiles() {
    write("proc/meminfo", "MemTotal:       67108864 kB\nMemFree:  1000 kB\nMemAvailable:   41943040 kB\n");
  }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / path).parent_path());
    std::ofstream(folder_.path() / path) << text;
  }
  HostMemory read() const { return host_memory(folder_.path()).value(); }

  testing::TempDir folder_;
};

TEST_F(HostMemoryFiles, GiveTheMachinesMemoryWithoutLimits) {
  const HostMemory memory = read();
  EXPECT_EQ(memory.total_bytes, 64 * kGiB);
  EXPECT_EQ(memory.available_bytes, 40 * kGiB);
  EXPECT_FALSE(memory.limit_bytes);
}

TEST_F(HostMemoryFiles, GiveTheLimitOfAControlGroup) {
  write("proc/self/cgroup", "0::/jobs/mine\n");
  write("sys/fs/cgroup/jobs/mine/memory.max", "max\n");
  write("sys/fs/cgroup/jobs/memory.max", "17179869184\n");      // 16 GiB
  write("sys/fs/cgroup/jobs/memory.current", "15032385536\n");  // 14 GiB
  write("sys/fs/cgroup/jobs/memory.stat", "anon 1\nactive_file 1073741824\ninactive_file 2147483648\n");
  const HostMemory memory = read();
  EXPECT_EQ(memory.total_bytes, 16 * kGiB);
  EXPECT_EQ(memory.limit_bytes, 16 * kGiB);
  EXPECT_EQ(memory.available_bytes, 5 * kGiB);
}

TEST_F(HostMemoryFiles, GiveTheLimitOfVersion1) {
  write("proc/self/cgroup", "9:cpu:/\n4:memory:/host/path/that/is/not/here\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "8589934592\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2147483648\n");
  EXPECT_EQ(read().total_bytes, 8 * kGiB);
  EXPECT_EQ(read().available_bytes, 6 * kGiB);
}

TEST_F(HostMemoryFiles, IgnoreALimitAboveTheMachine) {
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
  EXPECT_EQ(read().total_bytes, 64 * kGiB);
  EXPECT_FALSE(read().limit_bytes);
}

TEST_F(HostMemoryFiles, MayBeMissing) { EXPECT_FALSE(host_memory(folder_.path() / "nowhere")); }

TEST(HostMemory, IsKnownOfThisMachine) {
  const std::optional<HostMemory> memory = host_memory();
  ASSERT_TRUE(memory);
  EXPECT_GT(memory->available_bytes, 0);
  EXPECT_GE(memory->total_bytes, memory->available_bytes);
}

TEST(ResidentPeak, SeesWhatWasTouchedAndFreed) {
  reset_resident_peak();
  const int64_t before = resident_peak_bytes();
  constexpr size_t kBytes = size_t{200} << 20;
  { const std::vector<char> touched(kBytes, 1); }
  EXPECT_GE(resident_peak_bytes() - before, static_cast<int64_t>(kBytes) * 9 / 10);
}

}  // namespace
}  // namespace lancet
