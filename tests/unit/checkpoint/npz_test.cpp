#include "lancet/checkpoint/npz.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "lancet/core/error.h"
#include "support/io_support.h"
#include "support/io_zip_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

/// A .npy array with this header text as it stands.
std::string npy(std::string_view header, std::string_view data, char version = 1) {
  std::string bytes = std::string("\x93NUMPY") + version + '\0' + little(header.size(), version == 1 ? 2 : 4);
  return bytes.append(header).append(data);
}

std::string header(std::string_view descr, std::string_view shape, std::string_view order = "False") {
  return "{'descr': '" + std::string(descr) + "', 'fortran_order': " + std::string(order) +
         ", 'shape': " + std::string(shape) + ", }  \n";
}

template <typename T>
std::string data_of(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T)};
}

std::vector<Member> good_members(uint16_t method) {
  return {{"a.npy", npy(header("<f4", "(2, 3)"), data_of<float>({1, -2, 3, 4, 5.5F, 6})), method},
          {"b.c.npy", npy(header("<i8", "()"), data_of<int64_t>({-7})), method},
          {"d.npy", npy(header("<f8", "(2,)"), data_of<double>({0.5, -1e300}), 2), method},
          {"e.npy", npy(header("<i4", "(1, 0, 3)"), "", 3), method},
          {"text.npy", npy(header("<U2", "()"), std::string("a\0\0\0b\0\0\0", 8)), method}};
}

class NpzTest : public ::testing::Test {
 protected:
  NpzReader open(const std::string& bytes) {
    write_bytes(dir_ / "f.npz", bytes);
    return NpzReader::open(dir_ / "f.npz");
  }
  static std::string read(const NpzReader& file, const std::string& name) {
    std::string bytes(file.info(name).size_bytes, '?');
    file.read(name, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }
  /// The message that opening, or reading `name`, ends with.
  std::string refusal(const std::string& bytes, const std::string& name = "a") {
    const std::string message = message_of<CheckpointError>([&] { read(open(bytes), name); });
    expect_says(message, {(dir_ / "f.npz").string() + ": ", "expected ", ", got ", "; "});
    return message;
  }

  TempDir dir_;
};

TEST_F(NpzTest, GivesArraysOfStoredAndDeflatedMembers) {
  for (const uint16_t method : {uint16_t{0}, uint16_t{8}})
    for (const Zip64 wide : {Zip64::kNo, Zip64::kLocal, Zip64::kEverywhere}) {
      const NpzReader file = open(zip(good_members(method), wide));
      ASSERT_EQ(file.arrays().size(), 5u);
      EXPECT_EQ(file.info("a").dtype, DType::kF32);
      EXPECT_EQ(file.info("a").shape, (std::vector<int64_t>{2, 3}));
      EXPECT_EQ(read(file, "a"), data_of<float>({1, -2, 3, 4, 5.5F, 6}));
      EXPECT_EQ(file.info("b.c").dtype, DType::kI64);
      EXPECT_TRUE(file.info("b.c").shape.empty());
      EXPECT_EQ(read(file, "b.c"), data_of<int64_t>({-7}));
      EXPECT_EQ(file.info("d").dtype, DType::kF64);
      EXPECT_EQ(read(file, "d"), data_of<double>({0.5, -1e300}));
      EXPECT_EQ(file.info("e").dtype, DType::kI32);
      EXPECT_EQ(file.info("e").shape, (std::vector<int64_t>{1, 0, 3}));
      file.read("e", {});  // no room, and none is needed
      EXPECT_FALSE(file.info("text").dtype.has_value());
      EXPECT_EQ(file.info("text").descr, "<U2");
    }
}

TEST_F(NpzTest, OfNoArraysIsEmpty) { EXPECT_TRUE(open(zip({})).arrays().empty()); }

TEST_F(NpzTest, MayHoldItsSizesAfterTheData) {
  std::string bytes = zip({{"a.npy", npy(header("<i4", "()"), data_of<int32_t>({9})), 0, 0x0008}});
  std::memset(bytes.data() + 14, 0, 12);  // CRC-32 and sizes of the local header
  EXPECT_EQ(read(open(bytes), "a"), data_of<int32_t>({9}));
}

TEST_F(NpzTest, RefusesNamesThatAreAbsentOrStandTwice) {
  expect_says(refusal(zip(good_members(0)), "mom2.mom2"), {"'mom2.mom2'", "a, b.c, d, e, text", "check"});
  auto members = good_members(0);
  members[1].name = members[1].local_name = "a.npy";
  expect_says(refusal(zip(members)), {"'a.npy'", "once", "two"});
}

TEST_F(NpzTest, RefusesOtherTypesAndOrdersWhenTheyAreRead) {
  const auto one = [&](std::string_view descr, std::string_view order) {
    return refusal(zip({{"a.npy", npy(header(descr, "(2, 2)", order), std::string(16, 'x'))}}));
  };
  for (const std::string descr : {">f4", ">i8", "<f2", "|O", "<U4", "<c8", "=f4"})
    expect_says(one(descr, "False"), {"'a'", "<f4, <f8, <i4 or <i8", "'" + descr + "'", "astype"});
  expect_says(one("<f4", "True"), {"'a'", "C order", "Fortran order", "ascontiguousarray"});
}

TEST_F(NpzTest, RefusesNpyHeadersThatAreNotValid) {
  const std::vector<std::string> headers{"",
                                         "{}",
                                         header("<f4", "(2)"),
                                         header("<f4", "(2 2)"),
                                         header("<f4", "(,)"),
                                         header("<f4", "(-2,)"),
                                         header("<f4", "(+2,)"),
                                         header("<f4", "(2,,)"),
                                         header("<f4", "(2.0,)"),
                                         header("<f4", "(2"),
                                         header("<f4", "[2]"),
                                         header("<f4", "(99999999999999999999,)"),
                                         header("<f4", "(2,)", "false"),
                                         header("<f4", "(2,)", "0"),
                                         header("<f\\x34", "(2,)"),
                                         header("<f4", "(2,)") + "x",
                                         "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,), }",
                                         "{'descr': '<f4', 'shape': (2,), }",
                                         "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
                                         "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (2,), }",
                                         "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)"};
  for (const std::string& text : headers)
    expect_says(refusal(zip({{"a.npy", npy(text, data_of<float>({1, 2}))}})), {"'a'", ".npy header", "numpy.savez"});
  // Fine without the spaces and the last comma.
  const std::string tight = "{'descr':'<f4','fortran_order':False,'shape':(2,)}";
  EXPECT_EQ(read(open(zip({{"a.npy", npy(tight, data_of<float>({1, 2}))}})), "a"), data_of<float>({1, 2}));
}

TEST_F(NpzTest, RefusesArraysThatDisagreeWithTheirHeader) {
  const auto one = [&](const std::string& array) { return refusal(zip({{"a.npy", array}})); };
  expect_says(one(npy(header("<f4", "(3,)"), "12345678")), {"12 bytes", "[3]", "8 bytes"});
  expect_says(one(npy(header("<f4", "(1,)"), "12345678")), {"4 bytes", "8 bytes"});
  expect_says(one(npy(header("<f8", "(2305843009213693952, 4)"), "")), {"63 bits"});
  expect_says(one(npy(header("<f8", "(9223372036854775807, 0, 9)"), "")), {"63 bits"});
  expect_says(one(npy(header("<f4", "(1,)"), "1234", 4)), {"format 1, 2 or 3"});
  expect_says(one("\x93NUMPX" + npy(header("<f4", "()"), "1234").substr(6)), {"format 1, 2 or 3"});
  expect_says(one(npy(header("<f4", "()"), "").substr(0, 30)), {"within its member"});
  expect_says(one(npy(std::string(20'000, ' '), "")), {"10000", "20000"});
  expect_says(one("\x93NUM"), {"4 bytes"});
}

TEST_F(NpzTest, RefusesMembersThatAreEncryptedOddOrDamaged) {
  const std::string array = npy(header("<f4", "(300,)"), std::string(1200, 'x'));
  const auto one = [&](const Member& member) { return refusal(zip({member})); };
  expect_says(one({"a.npy", array, 0, 0x0001}), {"encrypted", "flags 1"});
  expect_says(one({"a.npy", array, 0, 0x0041}), {"encrypted"});
  expect_says(one({"a.npy", array, 14}), {"stored or deflated", "method 14"});
  expect_says(one({.name = "a.npy", .bytes = array, .crc = 5}), {"CRC-32 5"});
  expect_says(one({.name = "a.npy", .bytes = array, .method = 8, .crc = 5}), {"CRC-32 5"});
  expect_says(one({.name = "a.npy", .bytes = array, .size = 10}), {"10 bytes"});
  expect_says(one({.name = "a.npy", .bytes = array, .method = 8, .size = uint64_t{1} << 30}), {"a size", "1073741824"});
  expect_says(one({.name = "a.npy", .bytes = array, .method = 8, .size = array.size() - 1}), {"1200 bytes"});
  expect_says(one({.name = "a.npy", .bytes = array, .local_name = "b.npy"}), {"agrees with the zip directory"});
  expect_says(one({"a.txt", array}), {"NAME.npy", "a.txt"});
  expect_says(one({".npy", array}), {"NAME.npy"});

  const std::string packed = raw_deflate(array);
  const auto with_data = [&](const std::string& stored) {
    return one({.name = "a.npy", .bytes = array, .method = 8, .stored = stored});
  };
  expect_says(with_data(packed.substr(0, packed.size() - 3)), {"ends before"});
  expect_says(with_data(packed + "more"), {"another end"});
  expect_says(with_data("\x07" + packed), {"damaged data"});
  expect_says(with_data(raw_deflate(array + "y")), {"more compressed data"});
}

TEST_F(NpzTest, RefusesDirectoriesThatAreNotValid) {
  const std::string good = zip(good_members(0)), wide = zip(good_members(0), Zip64::kEverywhere);
  for (const std::string& bytes : {good, wide})
    for (size_t length = 0; length < bytes.size(); ++length) refusal(bytes.substr(0, length));
  expect_says(refusal("not a zip file, but text that is long enough"), {"end record", "no .npz file"});
  expect_says(refusal(good + "comment"), {"end record"});
  refusal("x" + good);

  const auto changed = [&](const std::string& base, size_t from_end, const std::string& bytes) {
    std::string copy = base;
    return copy.replace(copy.size() - from_end, bytes.size(), bytes);
  };
  expect_says(refusal(changed(good, 18, little(1, 2))), {"one part"});
  expect_says(refusal(changed(good, 12, little(4, 2))), {"one part"});
  expect_says(refusal(changed(good, 14, little(4, 2) + little(4, 2))), {"4 entries"});
  expect_says(refusal(changed(good, 14, little(6, 2) + little(6, 2))), {"more bytes"});
  expect_says(refusal(changed(good, 6, little(3, 4))), {"zip directory"});
  expect_says(refusal(changed(good, 6, little(0xfffffff0, 4))), {"zip directory"});
  expect_says(refusal(changed(good, 2, little(1, 2))), {"comment"});
  // zip64: offset, number of entries, place of the record, number of parts
  for (const size_t from_end : {22 + 20 + 8, 22 + 20 + 24, 22 + 12, 22 + 4})
    refusal(changed(wide, static_cast<size_t>(from_end), little(77, 8)));
}

TEST_F(NpzTest, RefusesMembersThatOverlap) {
  const std::string array = npy(header("<i4", "()"), data_of<int32_t>({3}));
  std::string bytes = zip({{"a.npy", array}, {"b.npy", array}});
  const size_t directory = bytes.find("PK\1\2"), second = bytes.find("PK\1\2", directory + 1);
  // The second entry points at the first member and has its name only there.
  bytes.replace(second + 42, 4, little(0, 4));
  expect_says(refusal(bytes), {"'b.npy'", "another header"});
  std::string inner = zip({{"b.npy", array}});
  inner.resize(inner.find("PK\1\2"));
  const std::string outer = npy(header("<U1", "(" + std::to_string(inner.size()) + ",)"), inner);
  bytes = zip({{"a.npy", outer}, {"b.npy", array}});
  const size_t entry = bytes.rfind("PK\1\2");
  bytes.replace(entry + 42, 4, little(bytes.find("PK\3\4", 4), 4));
  expect_says(refusal(bytes), {"'b.npy'", "overlap"});
}

TEST_F(NpzTest, RefusesOrStaysWithinTheFileForEveryCorruption) {
  constexpr uint64_t kSeed = 20261121;
  std::mt19937_64 random(kSeed);
  std::vector<std::string> bases;
  for (const uint16_t method : {uint16_t{0}, uint16_t{8}})
    for (const Zip64 wide : {Zip64::kNo, Zip64::kLocal, Zip64::kEverywhere})
      bases.push_back(zip(good_members(method), wide));
  int opened = 0, refused = 0;
  for (int i = 0; i < 6000; ++i) {
    const std::string bytes = damaged(bases[random() % bases.size()], random);
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed << ", case " << i);
    try {
      const NpzReader file = open(bytes);
      ++opened;
      for (const NpzArray& array : file.arrays()) {
        ASSERT_LE(array.size_bytes, bytes.size() * 1033);
        if (array.dtype) read(file, array.name);
      }
    } catch (const CheckpointError&) {
      ++refused;
    }
  }
  // Both outcomes occur, or the corruptions test nothing.
  EXPECT_GT(opened, 100);
  EXPECT_GT(refused, 3000);
}

}  // namespace
}  // namespace lancet
