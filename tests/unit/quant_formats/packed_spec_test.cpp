#include "lancet/quant_formats/packed_spec.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>

#include "lancet/core/error.h"
#include "lancet/quant_formats/find_packed.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace testing;

constexpr const char* kDownWeight = "model.layers.0.mlp.down_proj.weight";
constexpr const char* kModule = "model.layers.0.mlp.down_proj";
constexpr int64_t kRows = 64, kColumns = 96;

/// A tensor of a checkpoint whose numbers are 0, unless `bytes` says otherwise.
struct Part {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::string bytes = {};
};

struct Made {
  std::string config;
  std::vector<Part> parts;
};

std::string inside(const char* end) { return std::string(kModule) + end; }

std::string record(std::string_view more) {
  return R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [64, 96])" + std::string(more) + "}";
}

Made gptq() {
  return {R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": true})",
          {{inside(".qweight"), DType::kI32, {12, 64}},
           {inside(".qzeros"), DType::kI32, {3, 8}},
           {inside(".scales"), DType::kF16, {3, 64}},
           {inside(".g_idx"), DType::kI32, {96}}}};
}

Made nested() {
  const std::string text = record(R"(, "nested_blocksize": 256, "nested_offset": 0.5)");
  const std::string weight = kDownWeight;
  return {R"({"quant_method": "bitsandbytes", "load_in_4bit": true})",
          {{weight, DType::kU8, {3072, 1}},
           {weight + ".absmax", DType::kU8, {96}},
           {weight + ".nested_absmax", DType::kF32, {1}},
           {weight + ".nested_quant_map", DType::kF32, {256}},
           {weight + ".quant_map", DType::kF32, {16}},
           {weight + ".quant_state.bitsandbytes__nf4", DType::kU8, {static_cast<int64_t>(text.size())}, text}}};
}

Made compressed() {
  std::string shape(16, '\0');
  shape[0] = static_cast<char>(kRows);
  shape[8] = static_cast<char>(kColumns);
  return {R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
             "config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 4, "strategy": "group", "group_size": 32}}}})",
          {{inside(".weight_packed"), DType::kI32, {64, 12}},
           {inside(".weight_scale"), DType::kBF16, {64, 3}},
           {inside(".weight_shape"), DType::kI64, {2}, shape}}};
}

Made float8() {
  return {R"({"quant_method": "fp8", "weight_block_size": [32, 64]})",
          {{kDownWeight, DType::kF8E4M3, {64, 96}}, {inside(".weight_scale_inv"), DType::kF32, {2, 2}}}};
}

Made int8() {
  return {R"({"load_in_8bit": true})",
          {{kDownWeight, DType::kI8, {64, 96}},
           {inside(".SCB"), DType::kF32, {64}},
           {inside(".weight_format"), DType::kU8, {}}}};
}

Made awq() {
  return {R"({"quant_method": "awq", "bits": 4, "group_size": 32})",
          {{inside(".qweight"), DType::kI32, {96, 8}},
           {inside(".qzeros"), DType::kI32, {3, 8}},
           {inside(".scales"), DType::kF16, {3, 64}}}};
}

const std::array kMakers{gptq, nested, compressed, float8, int8, awq};

class PackedSpecTest : public ::testing::Test {
 protected:
  /// The folder with such a checkpoint.
  void write(const Made& made) {
    std::vector<std::string> memory;
    for (const Part& part : made.parts) {
      int64_t size = bytes_per_element(part.dtype);
      for (const int64_t n : part.shape) size *= n;
      memory.push_back(part.bytes.empty() ? std::string(static_cast<size_t>(size), '\0') : part.bytes);
    }
    std::vector<TensorSource> sources;
    for (size_t i = 0; i < made.parts.size(); ++i)
      sources.push_back({made.parts[i].name, made.parts[i].dtype, made.parts[i].shape, bytes_of(memory[i])});
    write_safetensors(folder_ / "model.safetensors", sources, {});
    write_bytes(folder_ / "config.json", R"({"quantization_config": )" + made.config + "}");
  }

  std::optional<PackedSpec> find(const MatrixPlace& place = {kDownWeight, kRows, kColumns}) {
    problems_.clear();
    const Checkpoint checkpoint = Checkpoint::open(folder_.path());
    const std::optional<QuantScheme> scheme = QuantScheme::parse(checkpoint.config_text(), {}, "config.json");
    return scheme ? find_packed(*scheme, checkpoint, place, problems_) : std::nullopt;
  }

  TempDir folder_;
  std::vector<std::string> problems_;
};

TEST_F(PackedSpecTest, NamesEveryTensorAndItsBytes) {
  for (const auto& make : kMakers) {
    const Made made = make();
    write(made);
    const std::optional<PackedSpec> spec = find();
    ASSERT_TRUE(spec) << made.config << (problems_.empty() ? "" : problems_.front());
    std::set<std::string> names, expected;
    for (const PackedPart& part : spec->parts) names.insert(part.tensor);
    for (const Part& part : made.parts) expected.insert(part.name);
    EXPECT_EQ(names, expected);
    EXPECT_EQ(static_cast<uint64_t>(spec->stored_bytes), Checkpoint::open(folder_.path()).tensor_bytes());
  }
}

TEST_F(PackedSpecTest, ReadsTheRecordOfBitsAndBytes) {
  write(nested());
  const std::optional<PackedSpec> spec = find();
  EXPECT_EQ(spec->block_size, 64);
  EXPECT_EQ(spec->nested_block_size, 256);
  EXPECT_EQ(spec->nested_offset, 0.5);
  EXPECT_TRUE(spec->code.nested);
  EXPECT_EQ(spec->table, NumberTable::kNf4);
  EXPECT_EQ(spec->part(PartRole::kNestedTable)->tensor, std::string(kDownWeight) + ".nested_quant_map");
  EXPECT_EQ(spec->part(PartRole::kOrder), nullptr);
}

TEST_F(PackedSpecTest, RefusesRecordsThatSayOtherThings) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({"quant_type": "fp4", "blocksize": 64, "shape": [64, 96]})", "quant_type: expected nf4"},
      {R"({"quant_type": "nf4", "blocksize": 63, "shape": [64, 96]})", "blocksize: expected a power of two"},
      {R"({"quant_type": "nf4", "shape": [64, 96]})",
       "blocksize: expected a power of two from 2 to 65536, got nothing"},
      {R"({"quant_type": "nf4", "blocksize": 64, "shape": [96, 64]})",
       "shape: expected [64, 96] from config.json, got [96,64]"},
      {record(R"(, "nested_blocksize": 256, "nested_offset": "much")"), "nested_offset: expected a number"},
      {record(R"(, "nested_blocksize": 256, "nested_offset": 1e300)"), "nested_offset: expected a number"},
      {"[1]", "expected a JSON object"},
      {std::string(70'000, ' '), "at most 65536 bytes"},
  };
  for (const auto& [text, says] : cases) {
    Made made = nested();
    made.parts.back().bytes = text;
    made.parts.back().shape = {static_cast<int64_t>(text.size())};
    write(made);
    EXPECT_FALSE(find());
    ASSERT_FALSE(problems_.empty()) << text;
    expect_says(problems_.front(), {"quant_state.bitsandbytes__nf4: ", says});
  }
}

TEST_F(PackedSpecTest, RefusesSizesThatDoNotFillWords) {
  write(gptq());
  EXPECT_FALSE(find({kDownWeight, kRows, 97}));
  expect_says(problems_.front(), {kDownWeight, "expected a multiple of 8 columns", "got 97"});
  for (const MatrixPlace& place : {MatrixPlace{kDownWeight, int64_t{1} << 62, 2}, MatrixPlace{kDownWeight, 0, 8}}) {
    EXPECT_FALSE(find(place));
    expect_says(problems_.front(), {"expected a matrix of 1 to "});
  }
}

Made mxfp4() {
  return {R"({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]})",
          {{"model.layers.0.mlp.experts.down_proj_blocks", DType::kU8, {4, 64, 3, 16}},
           {"model.layers.0.mlp.experts.down_proj_scales", DType::kU8, {4, 64, 3}}}};
}

TEST_F(PackedSpecTest, FindsExpertsInOneTensor) {
  const MatrixPlace place{"model.layers.0.mlp.experts.down_proj", kRows, kColumns, 4};
  write(mxfp4());
  const std::optional<PackedSpec> spec = find(place);
  ASSERT_TRUE(spec) << problems_.front();
  EXPECT_EQ(spec->slice.matrices, 4);
  EXPECT_EQ(spec->stored_bytes, 4 * 64 * 3 * 17);
  EXPECT_EQ(packed_bytes(spec->code, kRows, kColumns), 64 * 3 * 17 + 1024);

  const auto expect_problem = [&](const std::function<void(Made&)>& change, const MatrixPlace& at,
                                  const std::vector<std::string>& words) {
    Made made = mxfp4();
    change(made);
    write(made);
    EXPECT_FALSE(find(at));
    ASSERT_FALSE(problems_.empty()) << words.front();
    expect_says(problems_.front(), words);
  };
  expect_problem([](Made& made) { made.parts.pop_back(); }, place,
                 {"down_proj_scales: missing, expected U8", "[4, 64, 3]"});
  expect_problem([](Made& made) { made.parts.erase(made.parts.begin()); }, place, {"down_proj_blocks: missing"});
  expect_problem(
      [](Made& made) {
        made.parts[0].shape = {4, 64, 2, 16};
      },
      place, {"down_proj_blocks: shape [4, 64, 2, 16], expected [4, 64, 3, 16]"});
  expect_problem([](Made& made) { made.parts[1].dtype = DType::kI8; }, place, {"type I8, expected U8"});
  expect_problem([](Made&) {}, {place.name, kRows, 97, 4}, {"expected a multiple of 32 columns, got 97"});
  expect_problem([](Made& made) { made.config = gptq().config; }, place, {"down_proj_blocks", "expected GPTQ"});
  expect_problem(
      [](Made& made) {
        for (Part& part : made.parts)
          part.name = "model.layers.0.self_attn.q_proj" + part.name.substr(part.name.rfind('_'));
      },
      {"model.layers.0.self_attn.q_proj.weight", kRows, kColumns},
      {"nothing in quantization_config speaks of its module"});
}

TEST_F(PackedSpecTest, LeavesAloneWhatIsNoWeight) {
  write(gptq());
  EXPECT_FALSE(find({"model.layers.0.mlp.down_proj.bias", kRows, kColumns}));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(PackedSpecTest, RefusesOtherOrdersOfInt8) {
  Made made = int8();
  made.parts.back().bytes = "\2";
  write(made);
  EXPECT_FALSE(find());
  expect_says(problems_.front(), {"weight_format", "expected 0"});
}

TEST_F(PackedSpecTest, SurvivesEveryDamage) {
  constexpr uint64_t kSeed = 20261124;
  std::mt19937_64 random(kSeed);
  size_t n_found = 0, n_refused = 0;
  for (const auto& make : kMakers) {
    write(make());
    const std::string config = read_bytes(folder_ / "config.json"), tensors = read_bytes(folder_ / "model.safetensors");
    for (int i = 0; i < 300; ++i) {
      const bool is_config = i % 4 == 0;
      for (const char* name : {"config.json", "model.safetensors"})
        std::filesystem::remove(folder_ / name);  // some file systems flush what is truncated and written again
      write_bytes(folder_ / "config.json", is_config ? damaged(config, random) : config);
      // of the tensors only the header, and the record that some have last
      const size_t at = i % 4 == 1 && tensors.size() > 300 ? tensors.size() - 300 : 8, length = 300;
      std::string bytes = tensors;
      if (!is_config) bytes.replace(at, length, damaged(tensors.substr(at, length), random));
      write_bytes(folder_ / "model.safetensors", bytes);
      try {
        find() ? ++n_found : ++n_refused;
      } catch (const CheckpointError&) {
        ++n_refused;
      }
    }
  }
  EXPECT_GT(n_found, 100U) << "seed " << kSeed;
  EXPECT_GT(n_refused, 300U) << "seed " << kSeed;
}

}  // namespace
}  // namespace lancet
