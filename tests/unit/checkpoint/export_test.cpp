#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "lancet/checkpoint/checkpoint_export.h"
#include "lancet/core/error.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

constexpr const char* kPlain = R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                               R"("v":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})";
constexpr const char* kWithFormat = R"({"__metadata__":{"format":"pt","k":"kept"},)"
                                    R"("x":{"dtype":"I8","shape":[1,3],"data_offsets":[0,3]}})";

/// Two shards, the first without `format`; side files of which not all are the model's.
fs::path make_base(const TempDir& dir) {
  const fs::path base = dir / "base";
  write_bytes(base / "s1.safetensors", safetensors_bytes(kPlain, "wwv"));
  write_bytes(base / "s2.safetensors", safetensors_bytes(kWithFormat, "xyz"));
  write_bytes(base / "model.safetensors.index.json",
              R"({"weight_map":{"w":"s1.safetensors","v":"s1.safetensors","x":"s2.safetensors"}})");
  for (const char* name : {"config.json", "tokenizer.json", "merges.txt", "chat_template.jinja", "README.md", "LICENSE",
                           "optimizer.pt", "old.safetensors"})
    write_bytes(base / name, std::string("text of ") + name);
  return base;
}

fs::path make_target(const TempDir& dir) {
  fs::create_directories(dir / "target");
  return dir / "target";
}

TEST(ExportCheckpoint, ReplacesTheBytesOfOneTensorAndNothingElse) {
  const TempDir dir;
  const auto base = Checkpoint::open(make_base(dir));
  const fs::path target = make_target(dir);
  const std::vector<TensorSource> replaced{{"x", DType::kI8, {1, 3}, bytes_of("XYZ")}};
  export_checkpoint(base, {.replaced = replaced}, target);
  EXPECT_EQ(read_bytes(target / "s2.safetensors"), safetensors_bytes(kWithFormat, "XYZ"));
  EXPECT_EQ(read_bytes(base.folder() / "s2.safetensors"), safetensors_bytes(kWithFormat, "xyz"));
  EXPECT_EQ(names_in(target),
            (std::set<std::string>{"s1.safetensors", "s2.safetensors", "model.safetensors.index.json", "config.json",
                                   "tokenizer.json", "merges.txt", "chat_template.jinja"}));
  for (const char* name : {"config.json", "tokenizer.json", "merges.txt", "model.safetensors.index.json"})
    EXPECT_EQ(read_bytes(target / name), read_bytes(base.folder() / name));
}

TEST(ExportCheckpoint, AddsTheFormatThatTransformersAsksFor) {
  const TempDir dir;
  const auto base = Checkpoint::open(make_base(dir));
  const fs::path target = make_target(dir);
  const std::vector<TensorSource> replaced{{"v", DType::kU8, {1}, bytes_of("V")}};
  export_checkpoint(base, {.replaced = replaced}, target);
  const auto exported = Checkpoint::open(target);
  EXPECT_EQ(exported.shards()[0].metadata(), (Metadata{{"format", "pt"}}));
  EXPECT_EQ(exported.shards()[1].metadata(), (Metadata{{"format", "pt"}, {"k", "kept"}}));
  EXPECT_EQ(text_of(exported.view("w").bytes), "ww");
  EXPECT_EQ(text_of(exported.view("v").bytes), "V");
  EXPECT_EQ(text_of(exported.view("x").bytes), "xyz");
}

TEST(ExportCheckpoint, CopiesWhatLinksPointTo) {
  const TempDir dir;
  const fs::path base = make_base(dir);
  fs::create_directories(dir / "links");
  for (const std::string& name : names_in(base)) fs::create_symlink(base / name, dir / "links" / name);
  const fs::path target = make_target(dir);
  export_checkpoint(Checkpoint::open(dir / "links"), {}, target);
  for (const std::string& name : names_in(target))
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(target / name))) << name;
  EXPECT_EQ(read_bytes(target / "s2.safetensors"), read_bytes(base / "s2.safetensors"));
}

TEST(ExportCheckpoint, RefusesReplacementsThatDoNotFitTheBase) {
  const TempDir dir;
  const auto base = Checkpoint::open(make_base(dir));
  const fs::path target = make_target(dir);
  const auto refused = [&](std::vector<TensorSource> replaced) {
    return message_of<CheckpointError>([&] { export_checkpoint(base, {.replaced = replaced}, target); });
  };
  expect_says(refused({{"unknown", DType::kU8, {1}, bytes_of("x")}}), {"'unknown'"});
  expect_says(refused({{"w", DType::kI8, {2}, bytes_of("12")}}), {"'w'", "expected U8 [2]", "got I8 [2]"});
  expect_says(refused({{"w", DType::kU8, {1, 2}, bytes_of("12")}}), {"'w'", "expected U8 [2]", "got U8 [1, 2]"});
  expect_says(refused({{"w", DType::kU8, {2}, bytes_of("123")}}), {"'w'", "expected 2 bytes", "got 3"});
  expect_says(refused({{"v", DType::kU8, {1}, bytes_of("1")}, {"v", DType::kU8, {1}, bytes_of("2")}}), {"'v'", "two"});
  EXPECT_TRUE(names_in(target).empty());
}

TEST(ExportCheckpoint, RefusesATargetThatIsNotAnEmptyFolder) {
  const TempDir dir;
  const auto base = Checkpoint::open(make_base(dir));
  const auto refused = [&] {
    return message_of<CheckpointError>([&] { export_checkpoint(base, {}, dir / "target"); });
  };
  expect_says(refused(), {(dir / "target").string(), "empty folder", "got none"});
  write_bytes(dir / "target" / "kept", "x");
  expect_says(refused(), {"one with files in it"});
  EXPECT_EQ(names_in(dir / "target"), std::set<std::string>{"kept"});
}

/// Writes into the file that is open elsewhere, as `cp` over an existing file does, in another second.
void write_over(const fs::path& file, std::string_view bytes) {
  const auto written = fs::last_write_time(file);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  fs::last_write_time(file, written + std::chrono::seconds(1));
}

TEST(ExportCheckpoint, WritesTheFilesThatWereOpenedThoughOthersTookTheirPlaces) {
  const TempDir dir;
  const auto base = Checkpoint::open(make_base(dir));
  base.content_hash();
  const std::string tokenizer = read_bytes(base.folder() / "tokenizer.json");
  for (const char* name : {"s1.safetensors", "s2.safetensors", "tokenizer.json", "merges.txt"})
    fs::remove(base.folder() / name);
  write_bytes(base.folder() / "s1.safetensors", safetensors_bytes(kPlain, "123"));
  write_bytes(base.folder() / "s2.safetensors",
              safetensors_bytes(R"({"x":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}})", "??"));
  write_bytes(base.folder() / "tokenizer.json", "another one");
  const fs::path target = make_target(dir);
  export_checkpoint(base, {}, target);
  const auto exported = Checkpoint::open(target);
  EXPECT_EQ(text_of(exported.view("w").bytes), "ww");
  EXPECT_EQ(text_of(exported.view("v").bytes), "v");
  EXPECT_EQ(text_of(exported.view("x").bytes), "xyz");
  EXPECT_EQ(read_bytes(target / "tokenizer.json"), tokenizer);
  EXPECT_EQ(read_bytes(target / "merges.txt"), "text of merges.txt");
}

TEST(ExportCheckpoint, RefusesABaseThatWasWrittenToSinceItWasOpened) {
  for (const bool is_hashed : {true, false}) {
    for (const char* name : {"s2.safetensors", "config.json", "tokenizer.json", "model.safetensors.index.json"}) {
      const TempDir dir;
      const auto base = Checkpoint::open(make_base(dir));
      if (is_hashed) base.content_hash();
      std::string bytes = read_bytes(base.folder() / name);
      bytes.back() = 'X';
      write_over(base.folder() / name, bytes);  // of the same size and shapes
      const fs::path target = make_target(dir);
      expect_says(message_of<CheckpointError>([&] { export_checkpoint(base, {}, target); }),
                  {name, "written to since", "start again"});
      EXPECT_TRUE(names_in(target).empty());
    }
  }
}

TEST(ExportCheckpoint, TakesABaseThatWasTouchedAndHasTheSameContent) {
  const TempDir dir;
  const auto base = Checkpoint::open(make_base(dir));
  base.content_hash();
  write_over(base.folder() / "s2.safetensors", read_bytes(base.folder() / "s2.safetensors"));
  const fs::path target = make_target(dir);
  export_checkpoint(base, {}, target);
  EXPECT_EQ(read_bytes(target / "s2.safetensors"), safetensors_bytes(kWithFormat, "xyz"));
}

TEST(ExportCheckpoint, NoticesAChangeThatKeepsTheTimeOfWriting) {
  const TempDir dir;
  const auto base = Checkpoint::open(make_base(dir));
  base.content_hash();
  const fs::path shard = base.folder() / "s2.safetensors";
  const auto written = fs::last_write_time(shard);
  // the time of change, which nobody can set, ticks every few milliseconds
  for (const FileStamp before = base.shards()[1].file().stamp_now(); base.shards()[1].file().stamp_now() == before;) {
    std::ofstream(shard, std::ios::binary | std::ios::trunc) << safetensors_bytes(kWithFormat, "xyZ");
    fs::last_write_time(shard, written);
  }
  const fs::path target = make_target(dir);
  expect_says(message_of<CheckpointError>([&] { export_checkpoint(base, {}, target); }), {"s2.safetensors"});
}

TEST(ExportCheckpoint, NoticesAShardThatWasCutSinceItWasOpened) {
  for (const bool is_hashed : {true, false}) {
    const TempDir dir;
    const auto base = Checkpoint::open(make_base(dir));
    if (is_hashed) base.content_hash();
    fs::resize_file(base.folder() / "s1.safetensors", 0);  // a page of the mapping would be a fatal signal
    const fs::path target = make_target(dir);
    expect_says(message_of<CheckpointError>([&] { export_checkpoint(base, {}, target); }),
                {"s1.safetensors", "start again"});
  }
}

/// A matrix of two packed parts between other tensors, and the index that transformers writes.
constexpr const char* kPacked =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
    R"("m.codes":{"dtype":"I32","shape":[1],"data_offsets":[4,8]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]},)"
    R"("m.scales":{"dtype":"F16","shape":[1],"data_offsets":[12,14]},"c":{"dtype":"U8","shape":[2],"data_offsets":[14,16]}})";

fs::path make_packed_base(const TempDir& dir) {
  const fs::path base = dir / "base";
  write_bytes(base / "s1.safetensors", safetensors_bytes(kPacked, "aaaaMMMMbbbbSScc"));
  write_bytes(base / "s2.safetensors", safetensors_bytes(kWithFormat, "xyz"));
  write_bytes(base / "model.safetensors.index.json",
              R"({"metadata":{"total_size":19,"kept":[1]},"weight_map":{"x":"s2.safetensors","a":"s1.safetensors",)"
              R"("m.codes":"s1.safetensors","m.scales":"s1.safetensors","b":"s1.safetensors","c":"s1.safetensors"}})");
  write_bytes(base / "config.json", "old");
  return base;
}

const std::vector<std::string> kParts{"m.scales", "m.codes"};

TensorExchange whole_matrix() {
  return {.removed = kParts, .added = {{"m.weight", DType::kBF16, {2, 1}, bytes_of("WWWW")}}};
}

/// Pads the header with blanks to a multiple of 8, as the writer does.
std::string padded_file(std::string header, std::string_view data) {
  while (header.size() % 8 != 0) header += ' ';
  return safetensors_bytes(header, data);
}

TEST(ExportCheckpoint, PutsTensorsInThePlaceOfOthers) {
  const TempDir dir;
  const auto base = Checkpoint::open(make_packed_base(dir));
  const fs::path target = make_target(dir);
  const std::vector<TensorExchange> exchanged{whole_matrix()};
  const std::vector<TensorSource> replaced{{"b", DType::kBF16, {2}, bytes_of("BBBB")},
                                           {"x", DType::kI8, {1, 3}, bytes_of("XYZ")}};
  export_checkpoint(base, {.replaced = replaced, .exchanged = exchanged, .config_text = "new"}, target);
  EXPECT_EQ(
      read_bytes(target / "s1.safetensors"),
      padded_file(
          R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
          R"("m.weight":{"dtype":"BF16","shape":[2,1],"data_offsets":[4,8]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]},)"
          R"("c":{"dtype":"U8","shape":[2],"data_offsets":[12,14]}})",
          "aaaaWWWWBBBBcc"));
  EXPECT_EQ(read_bytes(target / "s2.safetensors"), safetensors_bytes(kWithFormat, "XYZ"));
  EXPECT_EQ(read_bytes(target / "config.json"), "new");
  EXPECT_EQ(read_bytes(target / "model.safetensors.index.json"),
            "{\n  \"metadata\": {\n    \"kept\": [\n      1\n    ],\n    \"total_size\": 17\n  },\n  "
            "\"weight_map\": {\n    \"a\": \"s1.safetensors\",\n    \"b\": \"s1.safetensors\",\n    "
            "\"c\": \"s1.safetensors\",\n    \"m.weight\": \"s1.safetensors\",\n    "
            "\"x\": \"s2.safetensors\"\n  }\n}\n");
  EXPECT_EQ(text_of(Checkpoint::open(target).view("m.weight").bytes), "WWWW");
  EXPECT_EQ(read_bytes(base.folder() / "s1.safetensors"), safetensors_bytes(kPacked, "aaaaMMMMbbbbSScc"));
}

TEST(ExportCheckpoint, PutsTensorsInThePlaceOfThoseOfSeveralShards) {
  const TempDir dir;
  const auto base = Checkpoint::open(make_packed_base(dir));
  const fs::path target = make_target(dir);
  const std::vector<TensorExchange> exchanged{
      {.removed = {"x", "c"}, .added = {{"x", DType::kU8, {1}, bytes_of("1")}, {"y", DType::kU8, {0}, {}}}}};
  export_checkpoint(base, {.exchanged = exchanged}, target);
  const auto exported = Checkpoint::open(target);
  EXPECT_EQ(exported.tensor_names(), (std::vector<std::string>{"a", "b", "m.codes", "m.scales", "x", "y"}));
  EXPECT_EQ(exported.view("x").owner->path().filename(), "s1.safetensors");
  EXPECT_EQ(text_of(exported.view("x").bytes), "1");
  EXPECT_FALSE(fs::exists(target / "s2.safetensors"));
}

TEST(ExportCheckpoint, ExchangesInAModelOfOneFile) {
  const TempDir dir;
  write_bytes(dir / "base" / "model.safetensors", safetensors_bytes(kPacked, "aaaaMMMMbbbbSScc"));
  write_bytes(dir / "base" / "config.json", "old");
  const auto base = Checkpoint::open(dir / "base");
  const fs::path target = make_target(dir);
  const std::vector<TensorExchange> exchanged{whole_matrix()};
  export_checkpoint(base, {.exchanged = exchanged}, target);
  EXPECT_EQ(names_in(target), (std::set<std::string>{"model.safetensors", "config.json"}));
  EXPECT_EQ(read_bytes(target / "config.json"), "old");
  const auto exported = Checkpoint::open(target);
  EXPECT_EQ(exported.tensor_names(), (std::vector<std::string>{"a", "b", "c", "m.weight"}));
  EXPECT_EQ(text_of(exported.view("b").bytes), "bbbb");
  EXPECT_EQ(text_of(exported.view("c").bytes), "cc");
}

TEST(ExportCheckpoint, OrdersTensorsBySizeWhereOneWouldLieAtAnOddPlace) {
  const TempDir dir;
  write_bytes(dir / "base" / "model.safetensors",
              safetensors_bytes(R"({"h":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},)"
                                R"("n":{"dtype":"U8","shape":[3],"data_offsets":[2,5]},)"
                                R"("m":{"dtype":"U8","shape":[1],"data_offsets":[5,6]},)"
                                R"("o":{"dtype":"U8","shape":[1],"data_offsets":[6,7]}})",
                                "hhnnnmo"));
  write_bytes(dir / "base" / "config.json", "old");
  const auto base = Checkpoint::open(dir / "base");
  const fs::path target = make_target(dir);
  const std::vector<TensorExchange> exchanged{{.removed = {"m"}, .added = {{"m", DType::kF32, {1}, bytes_of("MMMM")}}}};
  export_checkpoint(base, {.exchanged = exchanged}, target);
  const auto shard = SafetensorsReader::open(target / "model.safetensors");
  std::string names, data;
  for (const TensorInfo& info : shard.tensors()) {
    names += info.name;
    data += text_of(shard.view(info.name).bytes);
    EXPECT_EQ(info.begin % static_cast<uint64_t>(bytes_per_element(info.dtype)), 0U) << info.name;
  }
  EXPECT_EQ(names, "mhno");
  EXPECT_EQ(data, "MMMMhhnnno");
}

TEST(ExportCheckpoint, RefusesExchangesThatDoNotFit) {
  const TempDir dir;
  const auto base = Checkpoint::open(make_packed_base(dir));
  const fs::path target = make_target(dir);
  const std::vector<TensorSource> replaced{{"a", DType::kF32, {1}, bytes_of("AAAA")}};
  const auto refused = [&](std::vector<TensorExchange> exchanged) {
    return message_of<CheckpointError>(
        [&] { export_checkpoint(base, {.replaced = replaced, .exchanged = exchanged}, target); });
  };
  const TensorSource added{"new", DType::kU8, {1}, bytes_of("1")};
  expect_says(refused({{{"unknown"}, {added}}}), {"'unknown'"});
  expect_says(refused({{{}, {added}}}), {"got 0 and 1"});
  expect_says(refused({{{"b"}, {}}}), {"got 1 and 0"});
  expect_says(refused({{{"b", "b"}, {added}}}), {"'b'", "more than one change"});
  expect_says(refused({{{"a"}, {added}}}), {"'a'", "more than one change"});
  expect_says(refused({{{"b"}, {added}}, {{"c"}, {added}}}), {"'new'", "taken"});
  expect_says(refused({{{"b"}, {{"x", DType::kU8, {1}, bytes_of("1")}}}}), {"'x'", "taken"});
  expect_says(refused({{{"b"}, {{"new", DType::kBF16, {1}, bytes_of("123")}}}}), {"'new'", "BF16 [1]", "got 3 bytes"});
  expect_says(refused({{{"b"}, {{"new", DType::kBF16, {-1}, {}}}}}), {"'new'"});
  EXPECT_TRUE(names_in(target).empty());
}

/// Every tensor but one byte-identical, metadata kept, exactly the files of the model.
void check_export(const fs::path& folder, const fs::path& target, const std::set<std::string>& files) {
  const auto base = Checkpoint::open(folder);
  const std::string changed = base.tensor_names()[base.tensor_names().size() / 2];
  const TensorView old = base.view(changed);
  std::string bytes = text_of(old.bytes);
  std::ranges::reverse(bytes);
  ASSERT_NE(bytes, text_of(old.bytes));
  const std::vector<TensorSource> replaced{{changed, old.dtype, old.shape, bytes_of(bytes)}};
  export_checkpoint(base, {.replaced = replaced}, target);

  const auto exported = Checkpoint::open(target);
  EXPECT_EQ(exported.tensor_names(), base.tensor_names());
  for (const std::string& name : base.tensor_names()) {
    const TensorView view = exported.view(name);
    EXPECT_EQ(view.dtype, base.view(name).dtype) << name;
    EXPECT_EQ(view.shape, base.view(name).shape) << name;
    EXPECT_TRUE(std::ranges::equal(view.bytes, name == changed ? bytes_of(bytes) : base.view(name).bytes)) << name;
  }
  EXPECT_EQ(exported.shards().front().metadata(), base.shards().front().metadata());
  EXPECT_NE(exported.content_hash(), base.content_hash());
  EXPECT_EQ(names_in(target), files);
}

TEST(DemoModelExport, ChangesOneTensorOnly) {
  const fs::path folder = LANCET_SOURCE_DIR "/data/demo-model";
  const std::set<std::string> files{
      "config.json",    "generation_config.json", "model.safetensors",    "special_tokens_map.json",
      "tokenizer.json", "tokenizer.model",        "tokenizer_config.json"};
  const TempDir dir;
  check_export(folder, make_target(dir), files);
  if (!fs::exists("/dev/shm")) return;
  const TempDir other_file_system("/dev/shm");  // there the kernel's copy is refused
  check_export(folder, make_target(other_file_system), files);
}

}  // namespace
}  // namespace lancet
