#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/checkpoint/model_place.h"
#include "lancet/core/error.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;
namespace fs = std::filesystem;

/// One U8 tensor per name, each holding its name's bytes.
std::string shard_of(const std::vector<std::string>& names) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::string data;
  for (const std::string& name : names) {
    header += ",\"" + name + R"(":{"dtype":"U8","shape":[)" + std::to_string(name.size()) + R"(],"data_offsets":[)" +
              std::to_string(data.size()) + "," + std::to_string(data.size() + name.size()) + "]}";
    data += name;
  }
  return safetensors_bytes(header + "}", data);
}

class CheckpointTest : public ::testing::Test {
 protected:
  void write(const std::string& name, std::string_view text) { write_bytes(folder_ / name, text); }
  void write_sharded(const std::string& weight_map) {
    write("config.json", "{}");
    write("s1.safetensors", shard_of({"a", "bb"}));
    write("s2.safetensors", shard_of({"ccc"}));
    write("model.safetensors.index.json", R"({"metadata":{"total_size":6},"weight_map":)" + weight_map + "}");
  }
  std::string refusal() {
    return message_of<CheckpointError>([&] { Checkpoint::open(folder_); });
  }

  static constexpr const char* kWeightMap = R"({"a":"s1.safetensors","bb":"s1.safetensors","ccc":"s2.safetensors"})";
  TempDir dir_;
  fs::path folder_ = dir_ / "model";
};

TEST_F(CheckpointTest, OpensASingleFile) {
  write("config.json", R"({"model_type":"llama"})");
  write("model.safetensors", shard_of({"bb", "a"}));
  const auto checkpoint = Checkpoint::open(folder_);
  EXPECT_EQ(checkpoint.folder(), folder_);
  EXPECT_EQ(checkpoint.config_text(), R"({"model_type":"llama"})");
  EXPECT_EQ(checkpoint.tensor_names(), (std::vector<std::string>{"a", "bb"}));
  EXPECT_EQ(text_of(checkpoint.view("bb").bytes), "bb");
  EXPECT_EQ(checkpoint.info("a").shape, std::vector<int64_t>{1});
  EXPECT_EQ(checkpoint.tensor_bytes(), 3U);
  EXPECT_TRUE(checkpoint.contains("a"));
  EXPECT_FALSE(checkpoint.contains("c"));
}

TEST_F(CheckpointTest, OpensShardsThroughTheirIndex) {
  write_sharded(kWeightMap);
  const auto checkpoint = Checkpoint::open(folder_);
  EXPECT_EQ(checkpoint.shards().size(), 2U);
  EXPECT_EQ(checkpoint.tensor_names(), (std::vector<std::string>{"a", "bb", "ccc"}));
  EXPECT_EQ(text_of(checkpoint.view("ccc").bytes), "ccc");
  EXPECT_EQ(checkpoint.tensor_bytes(), 6U);
}

TEST_F(CheckpointTest, SuggestsTheNearestNameForAnUnknownTensor) {
  write("config.json", "{}");
  write("model.safetensors", shard_of({"model.norm.weight"}));
  const auto checkpoint = Checkpoint::open(folder_);
  expect_says(message_of<CheckpointError>([&] { checkpoint.view("model.norm.weigth"); }),
              {folder_.string(), "'model.norm.weigth'", "did you mean 'model.norm.weight'"});
}

TEST_F(CheckpointTest, HashesContentIndependentlyOfShardingAndNames) {
  write_sharded(kWeightMap);
  const std::string sharded = Checkpoint::open(folder_).content_hash();
  EXPECT_EQ(sharded.size(), 32U);

  const fs::path single = dir_ / "single";
  write_bytes(single / "config.json", R"({"other":1})");
  write_bytes(single / "model.safetensors", shard_of({"ccc", "a", "bb"}));
  EXPECT_EQ(Checkpoint::open(single).content_hash(), sharded);

  std::string changed = shard_of({"ccc", "a", "bb"});
  changed.back() = 'x';
  write_bytes(single / "model.safetensors", changed);
  EXPECT_NE(Checkpoint::open(single).content_hash(), sharded);

  // The same bytes under another shape.
  const auto hash_of = [&](const std::string& shape) {
    write_bytes(single / "model.safetensors",
                safetensors_bytes(R"({"w":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":[0,4]}})", "1234"));
    return Checkpoint::open(single).content_hash();
  };
  EXPECT_NE(hash_of("[4]"), hash_of("[2,2]"));
  EXPECT_NE(hash_of("[1,4]"), hash_of("[4,1]"));
}

TEST_F(CheckpointTest, HashesWhatItReadsAndNeverTheMapping) {
  write("config.json", "{}");
  write("model.safetensors", shard_of({"a", "bb"}));
  const auto cut = Checkpoint::open(folder_);
  fs::resize_file(folder_ / "model.safetensors", 0);
  expect_says(message_of<CheckpointError>([&] { cut.content_hash(); }),
              {"model.safetensors", "cut since it was opened"});

  write("model.safetensors", shard_of({"a", "bb"}));
  const auto changed = Checkpoint::open(folder_);
  write("model.safetensors", shard_of({"a", "cc"}));
  fs::last_write_time(folder_ / "model.safetensors", fs::file_time_type::clock::now() + std::chrono::seconds(2));
  expect_says(message_of<CheckpointError>([&] { changed.content_hash(); }), {"model.safetensors", "start again"});
}

TEST_F(CheckpointTest, RefusesFilesBesideTheWeightsThatCannotBeRead) {
  write("config.json", "{}");
  write("model.safetensors", shard_of({"a"}));
  fs::create_directory(folder_ / "tokenizer.json");
  expect_says(refusal(), {"tokenizer.json", "expected a regular file, got a folder"});
  fs::remove(folder_ / "tokenizer.json");
  ASSERT_EQ(::mkfifo((folder_ / "tokenizer.json").c_str(), 0600), 0);  // opening it would wait for a writer
  expect_says(refusal(), {"tokenizer.json", "got a pipe"});
}

TEST_F(CheckpointTest, RefusesAbsentFoldersAndFiles) {
  expect_says(refusal(), {folder_.string(), "expected a model folder", "nothing of that name", "hf download"});
  write_bytes(folder_, "a file");
  expect_says(refusal(), {folder_.string(), "not a folder"});
  fs::remove(folder_);
  write("model.safetensors", shard_of({"a"}));
  expect_says(refusal(), {folder_.string(), "config.json"});
}

TEST_F(CheckpointTest, RefusesPickledWeightsAndSaysHowToConvert) {
  for (const std::string name :
       {"pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "consolidated.00.pth", "w.pt"}) {
    fs::remove_all(folder_);
    write("config.json", "{}");
    write(name, "pickle");
    expect_says(refusal(), {folder_.string(), name, "AutoModelForCausalLM.from_pretrained('" + folder_.string(),
                            "safe_serialization=True"});
  }
}

TEST_F(CheckpointTest, RefusesGgufFilesLooseShardsAndFoldersWithoutWeights) {
  write("config.json", "{}");
  write("training_args.bin", "not weights");
  expect_says(refusal(), {folder_.string(), "no weights at all"});
  write("model-00001-of-00002.safetensors", shard_of({"a"}));
  expect_says(refusal(), {"model-00001-of-00002.safetensors without an index"});
  write("model-q4.gguf", "GGUF");
  expect_says(refusal(), {"model-q4.gguf", "the head", "the file is cut or damaged"});
}

constexpr const char* kPointer =
    "version https://git-lfs.github.com/spec/v1\noid "
    "sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e"
    "2393\nsize 269060552\n";

TEST_F(CheckpointTest, NamesPointersOfGitLfsInThePlaceOfFiles) {
  for (const std::string name : {"model.safetensors", "config.json", "tokenizer.json", "tokenizer.model"}) {
    fs::remove_all(folder_);
    write("config.json", "{}");
    write("model.safetensors", shard_of({"a"}));
    write(name, kPointer);
    expect_says(refusal(), {(folder_ / name).string(), "pointer of Git LFS", "git lfs pull"});
  }
  write_sharded(kWeightMap);
  write("s2.safetensors", kPointer);
  fs::remove(folder_ / "model.safetensors");
  fs::remove(folder_ / "tokenizer.model");
  expect_says(refusal(), {"s2.safetensors", "pointer of Git LFS"});
}

TEST_F(CheckpointTest, NamesFilesThatAreNamedInThePlaceOfAFolder) {
  const std::string gguf = std::string("GGUF\3\0\0\0", 8) + std::string(64, '\0');
  const auto refusal_of = [&](const std::string& name, const std::string& bytes) {
    write(name, bytes);
    return message_of<CheckpointError>([&] { Checkpoint::open(folder_ / name); });
  };
  expect_says(refusal_of("small.gguf", gguf),
              {(folder_ / "small.gguf").string(), "general.architecture", "none: the file holds no model"});
  expect_says(refusal_of("sha256-dde5aa3fc5ffc17176b5e8bdc82f587b24b2678c6c66101bf7da77af9f7ccdff", gguf),
              {"general.architecture", "none: the file holds no model"});
  expect_says(refusal_of("model.safetensors", shard_of({"a"})), {"a safetensors file alone", "name the folder"});
  expect_says(refusal_of("config.json", "{}"), {"not a folder; name the folder that it lies in"});
  expect_says(refusal_of("pytorch_model.bin", "PK\3\4 and so on"), {"not in the safetensors format"});
}

TEST_F(CheckpointTest, NamesFoldersOfOtherPrograms) {
  fs::create_directories(folder_ / "blobs");
  fs::create_directories(folder_ / "manifests");
  expect_says(refusal(), {"Ollama's store", "GGUF"});
  fs::remove_all(folder_);
  write("params.json", "{}");
  write("consolidated.00.pth", "PK");
  expect_says(refusal(), {"params.json, of the model's first publishers"});
  fs::remove_all(folder_);
  write("checkpoint-500/config.json", "{}");
  expect_says(refusal(), {"checkpoint-500", "name that folder"});
  fs::remove_all(folder_);
  write("adapter_config.json", "{}");
  expect_says(refusal(), {"an adapter of PEFT's; lancet apply"});
  write("config.json", "{}");
  expect_says(refusal(), {"an adapter of PEFT's beside a config.json; lancet apply"});
  write("qmodel.pt", "PK");
  expect_says(refusal(), {"qmodel.pt, weights that HQQ has packed"});
  fs::remove_all(folder_);
  write("config.json", "{}");
  write("tf_model.h5", "\x89HDF");
  expect_says(refusal(), {"tf_model.h5, weights for another program"});
}

TEST_F(CheckpointTest, TakesAnAbsentPlaceOfTwoNamesForANameOfTheHub) {
  const auto refusal_of = [](const char* place) {
    return message_of<CheckpointError>([&] { Checkpoint::open(place); });
  };
  expect_says(
      refusal_of("HuggingFaceTB/SmolLM2-135M-Instruct"),
      {"nothing of that name", "hf download HuggingFaceTB/SmolLM2-135M-Instruct --local-dir SmolLM2-135M-Instruct"});
  expect_says(refusal_of("llama3.2:3b"), {"a model of Ollama's", "ollama show llama3.2:3b --modelfile"});
  expect_says(refusal_of("gpt2-absent"), {"hf download ORG/NAME --local-dir FOLDER"});
}

TEST_F(CheckpointTest, SaysWhereAWholeFileAndShardsBesideItDisagree) {
  write_sharded(kWeightMap);
  EXPECT_EQ(disagreement(Checkpoint::open(folder_)), "");
  write("model.safetensors", shard_of({"a", "bb", "ccc"}));
  EXPECT_EQ(disagreement(Checkpoint::open(folder_)), "");
  std::string other = shard_of({"ccc", "a", "bb"});
  other.back() = 'x';
  write("model.safetensors", other);
  const auto checkpoint = Checkpoint::open(folder_);
  expect_says(disagreement(checkpoint), {folder_.string(), "which is read", "1 of 3 tensors (bb)"});
  EXPECT_EQ(text_of(checkpoint.view("bb").bytes), "bx");
  write("model.safetensors", shard_of({"a"}));
  expect_says(disagreement(Checkpoint::open(folder_)), {"2 of 3 tensors (bb, ...)"});
  fs::remove(folder_ / "s2.safetensors");
  EXPECT_EQ(disagreement(Checkpoint::open(folder_)), "") << "an index that was left behind";
}

TEST_F(CheckpointTest, RefusesAnIndexWhoseShardIsMissing) {
  write_sharded(kWeightMap);
  fs::remove(folder_ / "s2.safetensors");
  expect_says(refusal(), {"model.safetensors.index.json", "expected 2 shards", "without s2.safetensors"});
}

TEST_F(CheckpointTest, LeavesATensorThatTheIndexNamesAndNoShardHasToTheFamily) {
  write_sharded(R"({"a":"s1.safetensors","bb":"s1.safetensors","ccc":"s2.safetensors","mtp.fc":"s2.safetensors"})");
  const auto checkpoint = Checkpoint::open(folder_);
  EXPECT_EQ(absent_names(checkpoint), std::vector<std::string>{"mtp.fc"});
  EXPECT_EQ(checkpoint.tensor_names(), (std::vector<std::string>{"a", "bb", "ccc"}));
}

TEST_F(CheckpointTest, RefusesATensorThatTheIndexDoesNotName) {
  write_sharded(R"({"a":"s1.safetensors","ccc":"s2.safetensors"})");
  expect_says(refusal(), {"tensor 'bb' of shard s1.safetensors", "expected an entry", "got none"});
}

TEST_F(CheckpointTest, RefusesATensorThatIsInTwoShards) {
  write_sharded(kWeightMap);
  write("s2.safetensors", shard_of({"ccc", "a"}));
  expect_says(refusal(), {"tensor 'a' of shard s2.safetensors", "an entry for s1.safetensors"});
}

TEST_F(CheckpointTest, ReportsAllDisagreementsAtOnceButNotThousands) {
  write_sharded(R"({"a":"s1.safetensors","ccc":"s2.safetensors"})");
  std::vector<std::string> names{"ccc"};
  for (int i = 0; i < 30; ++i) names.push_back("x" + std::to_string(i));
  write("s2.safetensors", shard_of(names));
  expect_says(refusal(), {"'bb'", "'x0'", "'x1'", "and 21 more"});
}

TEST_F(CheckpointTest, RefusesShardNamesThatLeaveTheFolder) {
  for (const std::string name :
       {"../s1.safetensors", "/etc/passwd", "..", ".", "", "sub/s1.safetensors", "s1\\u0000"}) {
    write_sharded(R"({"a":")" + name + R"("})");
    expect_says(refusal(), {"tensor 'a'", "plain file name"});
  }
  write_sharded(R"({"a":3})");
  expect_says(refusal(), {"tensor 'a'", "plain file name", "got 3"});
}

TEST_F(CheckpointTest, RefusesAnIndexThatIsNotOne) {
  write_sharded(R"({"a":"s1.safetensors","a":"s2.safetensors"})");
  expect_says(refusal(), {"model.safetensors.index.json", "'a'", "twice"});
  write("model.safetensors.index.json", "{");
  expect_says(refusal(), {"model.safetensors.index.json", "not valid JSON"});
  write("model.safetensors.index.json", "[]");
  expect_says(refusal(), {"'weight_map'"});
  write("model.safetensors.index.json", R"({"weight_map":[]})");
  expect_says(refusal(), {"'weight_map'"});
}

class CacheTest : public CheckpointTest {
 protected:
  /// Adds a snapshot as huggingface_hub lays it out: symbolic links to blobs.
  void add_snapshot(const std::string& revision, const std::string& tensor) {
    write_bytes(cache_ / "blobs" / ("config" + revision), "{}");
    write_bytes(cache_ / "blobs" / ("weights" + revision), shard_of({tensor}));
    const fs::path snapshot = cache_ / "snapshots" / revision;
    fs::create_directories(snapshot);
    fs::create_symlink("../../blobs/config" + revision, snapshot / "config.json");
    fs::create_symlink("../../blobs/weights" + revision, snapshot / "model.safetensors");
  }
  std::string cache_refusal() {
    return message_of<CheckpointError>([&] { Checkpoint::open(cache_); });
  }
  fs::path cache_ = dir_ / "models--org--name";
};

TEST_F(CacheTest, TakesTheOnlySnapshot) {
  add_snapshot("abc", "w");
  const auto checkpoint = Checkpoint::open(cache_);
  EXPECT_EQ(checkpoint.folder(), cache_ / "snapshots" / "abc");
  EXPECT_EQ(text_of(checkpoint.view("w").bytes), "w");
  EXPECT_TRUE(Checkpoint::open(cache_ / "snapshots" / "abc").contains("w"));
}

TEST_F(CacheTest, TakesTheSnapshotOfRefsMain) {
  add_snapshot("abc", "old");
  add_snapshot("def", "new");
  expect_says(cache_refusal(), {"refs/main", "2 snapshots [abc, def]"});
  write_bytes(cache_ / "refs" / "main", "def\n");
  EXPECT_TRUE(Checkpoint::open(cache_).contains("new"));
  write_bytes(cache_ / "refs" / "main", "../../elsewhere");
  expect_says(cache_refusal(), {"refs/main", "[abc, def]", "'../../elsewhere'"});
}

TEST_F(CacheTest, SaysWhichLinkedFileIsGone) {
  add_snapshot("abc", "w");
  fs::remove(cache_ / "blobs" / "weightsabc");
  expect_says(cache_refusal(), {"abc/model.safetensors", "No such file", "symbolic link"});
}

TEST(Checkpoint, OpensTheDemoModel) {
  const fs::path folder = LANCET_SOURCE_DIR "/data/demo-model";
  const auto checkpoint = Checkpoint::open(folder);
  EXPECT_EQ(checkpoint.tensor_names().size(), 74U);
  EXPECT_EQ(checkpoint.tensor_bytes(), 14688768U);
  EXPECT_EQ(checkpoint.shards().front().metadata().at("format"), "pt");
  EXPECT_EQ(checkpoint.content_hash(), Checkpoint::open(folder).content_hash());
}

}  // namespace
}  // namespace lancet
