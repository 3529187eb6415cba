#include "lancet/checkpoint/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "support/io_support.h"
#include "support/temp_dir.h"

namespace lancet {
namespace {

using testing::TempDir;

/// A file as numpy 2 writes it: the header is padded to 128 bytes with the rest.
std::string npy_file(const std::string& dictionary, const std::string& data) {
  std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
  file += dictionary;
  file.resize(127, ' ');
  return file + "\n" + data;
}

std::string bytes_of_numbers(const std::vector<double>& numbers) {
  std::string bytes(numbers.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(NpyNumbers, AreReadAsWritten) {
  const TempDir folder;
  const std::vector<double> numbers{1.5, -2, 1e300};
  write_text_file(folder / "a.npy",
                  npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", bytes_of_numbers(numbers)));
  EXPECT_EQ(read_npy_numbers(folder / "a.npy"), numbers);
}

TEST(NpyNumbers, RefuseAllElse) {
  const TempDir folder;
  const std::string good = npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes_of_numbers({1}));
  const std::vector<std::string> bad{
      "",
      good.substr(0, 9),
      good.substr(0, 100),
      good.substr(0, 130),
      good + "x",
      "PK" + good,
      npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", bytes_of_numbers({1})),
      npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", bytes_of_numbers({1})),
      npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", bytes_of_numbers({1}))};
  for (const std::string& bytes : bad) {
    write_text_file(folder / "a.npy", bytes);
    EXPECT_THROW(read_npy_numbers(folder / "a.npy"), ConfigError) << excerpt(bytes, 80);
  }
  EXPECT_THROW(read_npy_numbers(folder / "absent.npy"), ConfigError);
}

TEST(NpyNumbers, AreAsManyOrRefusedForEveryCorruption) {
  const TempDir folder;
  std::mt19937_64 random(20261122);
  const std::string good =
      npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", bytes_of_numbers({1, 2, 3}));
  for (int i = 0; i < 1000; ++i) {
    testing::write_bytes(folder / "a.npy", testing::damaged(good, random));
    try {
      EXPECT_EQ(read_npy_numbers(folder / "a.npy").size(), 3u) << i;
    } catch (const ConfigError&) {
    }
  }
}

}  // namespace
}  // namespace lancet
