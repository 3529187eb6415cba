#include "lancet/statistics/kept_matrices.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <fstream>

#include "lancet/core/error.h"
#include "lancet/runtime/devices.h"
#include "support/temp_dir.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 16, kBytes = 8 * kSide * kSide;

/// Files whose only number stands for a matrix.
class KeptMatricesTest : public ::testing::Test {
 protected:
  void write(const std::string& name, double number) const { std::ofstream(folder_ / name) << number; }

  /// Takes the matrix of a file; says whether it was read for that.
  bool is_read_for(const std::string& name) {
    const int64_t before = kept_.reads();
    const Tensor matrix = kept_.matrix(place(name), [&] { return read(name); });
    EXPECT_TRUE(torch::equal(matrix, read(name))) << name;
    EXPECT_EQ(matrix.strides(), read(name).strides()) << name;
    EXPECT_LE(kept_.kept_bytes(Placement::host()), room_) << name;
    return kept_.reads() > before;
  }
  void set_room(int64_t matrices) {
    room_ = matrices * kBytes + kBytes / 2;
    kept_.set_room({{Placement::host(), room_}});
  }

  FileMatrix place(const std::string& name) const { return {.file = folder_ / name, .device = Placement::host()}; }
  Tensor read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    double number = 0;
    if (!(file >> number)) throw CheckpointError(name + ": no number");
    return torch::full({kSide, kSide}, number, torch::kDouble).mT();
  }

  testing::TempDir folder_;
  int64_t room_ = 0;
  KeptMatrices kept_;
};

TEST_F(KeptMatricesTest, ReadsAFileOnceWhileItStaysAsItIs) {
  set_room(2);
  write("a", 1);
  EXPECT_TRUE(is_read_for("a"));
  EXPECT_FALSE(is_read_for("a"));
  write("a", 22);
  EXPECT_TRUE(is_read_for("a")) << "written to";
  EXPECT_FALSE(is_read_for("a"));
  write("b", 33);
  fs::last_write_time(folder_ / "b", fs::last_write_time(folder_ / "a"));
  fs::rename(folder_ / "b", folder_ / "a");
  EXPECT_TRUE(is_read_for("a")) << "another file of the same size and time";
  std::ofstream(folder_ / "a") << "damaged";
  EXPECT_THROW(is_read_for("a"), CheckpointError);
  EXPECT_EQ(kept_.kept_bytes(Placement::host()), 0);
  fs::remove(folder_ / "a");
  EXPECT_THROW(is_read_for("a"), CheckpointError);
}

TEST_F(KeptMatricesTest, KeepsNothingWithoutRoom) {
  write("a", 1);
  EXPECT_TRUE(is_read_for("a"));
  EXPECT_TRUE(is_read_for("a"));
}

/// A pass over more layers than there is room for would else find none of them.
TEST_F(KeptMatricesTest, AFullRoomKeepsWhatComesAgainAndAgain) {
  set_room(2);
  for (const char* name : {"a", "b", "c"}) write(name, name[0]);
  for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(is_read_for(name)) << name;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(is_read_for("a"));
    EXPECT_FALSE(is_read_for("b"));
    EXPECT_TRUE(is_read_for("c"));
  }
}

TEST_F(KeptMatricesTest, TheLeastRecentlyUsedMakesPlace) {
  set_room(2);
  for (const char* name : {"a", "b", "c"}) write(name, name[0]);
  for (const char* name : {"b", "a", "c"}) EXPECT_TRUE(is_read_for(name)) << name;
  EXPECT_TRUE(is_read_for("c"));  // since it was last asked for nobody asked for others
  EXPECT_FALSE(is_read_for("c"));
  EXPECT_FALSE(is_read_for("a"));
  EXPECT_TRUE(is_read_for("b"));
}

/// A file that several ask for is checked once: by reading it where it is then kept.
TEST_F(KeptMatricesTest, ChecksAFileOnce) {
  write("a", 1);
  int checks = 0;
  const auto check = [&] {
    kept_.check(
        place("a"), kBytes, [&] { return read("a"); }, [&] { ++checks; });
  };
  check();
  check();
  EXPECT_EQ(checks, 1);
  write("a", 22);
  check();
  EXPECT_EQ(checks, 2);
  set_room(1);
  write("a", 333);
  check();
  EXPECT_EQ(checks, 2);
  EXPECT_EQ(kept_.reads(), 1);
  EXPECT_FALSE(is_read_for("a"));
}

}  // namespace
}  // namespace lancet
