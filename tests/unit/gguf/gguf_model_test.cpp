#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_head.h"
#include "lancet/gguf/gguf_model.h"
#include "support/gguf_files.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace testing;
using Json = nlohmann::json;

struct GgufModelTest : public ::testing::Test {
  GgufFile open(const std::string& bytes) const {
    write_bytes(folder / "m.gguf", bytes);
    return GgufFile::open(folder / "m.gguf");
  }
  GgufFile small() const { return open(small_llama_file()); }
  /// The small model with one entry in another's place.
  GgufFile with(size_t place, const std::string& entry) const {
    std::vector<std::string> metadata = small_llama();
    metadata[place] = entry;
    return open(gguf_file(metadata, {tensor_info("token_embd.weight", {32, 5}, 8, 0)}, std::string(192, '\0')));
  }
  static std::string refusal(const GgufFile& file, const char* name) {
    try {
      static_cast<void>(gguf_side_text(file, name));
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "nothing";
  }
  TempDir folder;
};

TEST_F(GgufModelTest, SaysWhatConfigJsonWouldSay) {
  const Json config = Json::parse(*gguf_side_text(small(), "config.json"));
  EXPECT_EQ(config["architectures"], Json({"LlamaForCausalLM"}));
  EXPECT_EQ(config["hidden_size"], 32);
  EXPECT_EQ(config["num_key_value_heads"], 2);
  EXPECT_EQ(config["rope_theta"], 5e5);
  EXPECT_EQ(config["vocab_size"], 5);
  EXPECT_EQ(config["tie_word_embeddings"], true);
  EXPECT_EQ(config["eos_token_id"], 0);
  EXPECT_EQ(config["quantization_config"], Json({{"quant_method", "gguf"}}));
}

TEST_F(GgufModelTest, GivesTensorsTheNamesOfTheClass) {
  const GgufFile file = small();
  const std::vector<GgufWeight> weights = gguf_weights(file);
  ASSERT_EQ(weights.size(), 3U);
  EXPECT_EQ(weights[0].name, "model.embed_tokens.weight");
  EXPECT_EQ(weights[1].name, "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(weights[1].change, GgufChange::kHeadRows);
  EXPECT_EQ(weights[1].heads.queries, 4);
  EXPECT_EQ(weights[2].change, GgufChange::kNone);
  const GgufFile other =
      open(gguf_file(small_llama(), {tensor_info("blk.0.rwkv.weight", {4}, 0, 0)}, std::string(32, '\0')));
  EXPECT_THROW(gguf_weights(other), CheckpointError);
}

TEST_F(GgufModelTest, RefusesWhatItDoesNotReadByName) {
  EXPECT_NE(refusal(with(0, text_entry("general.architecture", "rwkv7")), "config.json").find("'rwkv7'"),
            std::string::npos);
  EXPECT_NE(refusal(with(0, text_entry("general.architecture", "clip")), "config.json").find("sees images"),
            std::string::npos);
  EXPECT_NE(refusal(with(9, text_entry("tokenizer.ggml.model", "t5")), "tokenizer.json").find("'t5'"),
            std::string::npos);
  EXPECT_NE(refusal(with(10, text_entry("tokenizer.ggml.pre", "viking")), "tokenizer.json").find("'viking'"),
            std::string::npos);
  EXPECT_NE(
      refusal(with(11, texts_entry("tokenizer.ggml.tokens", {"a", "\xff"})), "tokenizer.json").find("a type for each"),
      std::string::npos);
}

TEST_F(GgufModelTest, SaysWhatTokenizerJsonWouldSay) {
  const Json tokenizer = Json::parse(*gguf_side_text(small(), "tokenizer.json"));
  EXPECT_EQ(tokenizer["added_tokens"].size(), 1U);
  EXPECT_EQ(tokenizer["added_tokens"][0]["content"], "<s>");
  EXPECT_EQ(tokenizer["model"]["vocab"]["ab"], 3);
  EXPECT_EQ(tokenizer["model"]["merges"], Json({"a b"}));
  EXPECT_EQ(tokenizer["pre_tokenizer"]["pretokenizers"][0]["type"], "Digits");
  EXPECT_EQ(gguf_side_text(small(), "chat_template.jinja"), "{{ messages[0].content }}");
  EXPECT_EQ(Json::parse(*gguf_side_text(small(), "tokenizer_config.json"))["eos_token"], "<s>");
}

TEST_F(GgufModelTest, MergesPiecesOfTheHighestScoreFirst) {
  std::vector<std::string> metadata = small_llama();
  metadata[9] = text_entry("tokenizer.ggml.model", "llama");
  metadata[11] = texts_entry("tokenizer.ggml.tokens", {"<unk>", "a", "b", "ab", "bb", "abb"});
  metadata[12] = i32s_entry("tokenizer.ggml.token_type", {2, 1, 1, 1, 1, 1});
  metadata[13] = gguf_text("tokenizer.ggml.scores") + raw<uint32_t>(9) + raw<uint32_t>(6) + raw<uint64_t>(6);
  for (const float score : {0.0F, -5.0F, -6.0F, -3.0F, -2.0F, -4.0F}) metadata[13] += raw(score);
  const GgufFile file =
      open(gguf_file(metadata, {tensor_info("token_embd.weight", {32, 6}, 8, 0)}, std::string(224, '\0')));
  const Json tokenizer = Json::parse(*gguf_side_text(file, "tokenizer.json"));
  // of the same piece the pair with the longer left part
  EXPECT_EQ(tokenizer["model"]["merges"], Json::parse(R"([["b","b"],["a","b"],["ab","b"],["a","bb"]])"));
  EXPECT_EQ(tokenizer["model"]["byte_fallback"], true);
  EXPECT_EQ(tokenizer["post_processor"]["single"].size(), 2U);  // llama.cpp puts BOS before such a text
}

TEST_F(GgufModelTest, RefusesNumbersThatChangeTheModelAndThatItDoesNotRead) {
  constexpr size_t kEps = 7, kRopeBase = 8, kTokenTypes = 12, kTemplate = 16;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto says = [&](size_t place, const std::string& entry, const char* part) {
    expect_says(refusal(with(place, entry), "config.json"), {part});
  };
  says(kEps, f32_entry("llama.attention.layer_norm_rms_epsilon", nan), "a finite number");
  says(kEps, f32_entry("other", 1), "the norms' epsilon");
  says(kRopeBase, f32_entry("llama.rope.freq_base", nan), "a finite number");
  says(kTemplate, u32_entry("llama.rope.dimension_count", 4), "llama.rope.dimension_count': expected 8");
  says(kTemplate, u32_entry("llama.attention.value_length", 16), "llama.attention.value_length': expected 8");
  says(kTemplate, f32_entry("llama.attention.scale", 0.5F), "llama.attention.scale");
  says(kTemplate, f32_entry("llama.rope.scale_linear", 4), "llama.rope.scale_linear");
  says(kTemplate, texts_entry("llama.logit_scale", {"1"}), "expected numbers");
  EXPECT_TRUE(gguf_side_text(with(kTemplate, u32_entry("llama.rope.dimension_count", 8)), "config.json"));
  EXPECT_TRUE(gguf_side_text(with(kTemplate, f32_entry("llama.attention.scale", 0)), "config.json"));
  const GgufFile foreign_type = with(kTokenTypes, i32s_entry("tokenizer.ggml.token_type", {3, 1, 99, 1, 1}));
  expect_says(refusal(foreign_type, "tokenizer.json"), {"whole numbers from 0 to 6"});
}

TEST_F(GgufModelTest, RefusesPiecesWhoseMergesWouldTakeTooMuchMemory) {
  std::vector<std::string> metadata = small_llama(), tokens{"<unk>"};
  for (const char letter : {'a', 'b', 'c'})
    for (size_t n = 1; n < 1000; ++n) tokens.emplace_back(n, letter);
  metadata[9] = text_entry("tokenizer.ggml.model", "llama");
  metadata[11] = texts_entry("tokenizer.ggml.tokens", tokens);
  metadata[12] = i32s_entry("tokenizer.ggml.token_type", std::vector<int32_t>(tokens.size(), 1));
  const auto n = static_cast<uint64_t>(tokens.size());
  metadata[13] = gguf_text("tokenizer.ggml.scores") + raw<uint32_t>(9) + raw<uint32_t>(6) + raw<uint64_t>(n) +
                 std::string(n * 4, '\0');
  const GgufFile file =
      open(gguf_file(metadata, {tensor_info("token_embd.weight", {32, n}, 8, 0)}, std::string(n * 34, '\0')));
  expect_says(refusal(file, "tokenizer.json"), {"tokenizer.ggml.tokens", "merges"});
}

TEST_F(GgufModelTest, FindsTheFileThatAPathMeans) {
  EXPECT_EQ(find_gguf(folder / ""), std::nullopt);
  write_bytes(folder / "mmproj-f16.gguf", small_llama_file());
  write_bytes(folder / "sha256-0123", small_llama_file());
  EXPECT_EQ(find_gguf(folder / "sha256-0123"), folder / "sha256-0123");
  EXPECT_EQ(find_gguf(folder / ""), std::nullopt);
  write_bytes(folder / "m-00001-of-00002.gguf", small_llama_file());
  write_bytes(folder / "m-00002-of-00002.gguf", small_llama_file());
  EXPECT_EQ(find_gguf(folder / "")->filename(), "m-00001-of-00002.gguf");
  write_bytes(folder / "other.gguf", small_llama_file());
  EXPECT_THROW(find_gguf(folder / ""), CheckpointError);
  write_bytes(folder / "model.safetensors", "");
  EXPECT_EQ(find_gguf(folder / ""), std::nullopt);
}

TEST_F(GgufModelTest, AHeadKeepsMetadataAndGivesTensorsNewPlaces) {
  const GgufFile base = small();
  std::vector<GgufWritten> tensors;
  for (const GgufTensor& tensor : base.tensors()) tensors.push_back({&tensor, tensor.type, tensor.bytes});
  tensors[0].type = find_gguf_type("F16");
  tensors[0].bytes = 5 * 32 * 2;
  const std::vector<GgufAddition> added{{"lancet.edits", uint32_t{3}},
                                        {"llama.context_length", std::string("as text")}};
  std::string head = gguf_head(base, tensors, added);
  EXPECT_EQ(head.size() % 32, 0U);
  EXPECT_EQ(tensors[1].begin, 320U);
  const std::vector<std::string> base_tokens = base.texts("tokenizer.ggml.tokens");
  // open() writes the same file again: nothing of `base` is read after it
  const GgufFile written = open(head + std::string(tensors[2].begin + 128, '\0'));
  EXPECT_EQ(written.metadata().size(), base.metadata().size() + 1);
  EXPECT_EQ(written.texts("tokenizer.ggml.tokens"), base_tokens);
  EXPECT_EQ(written.text("llama.context_length"), "as text");
  EXPECT_EQ(written.whole("lancet.edits"), 3);
  EXPECT_EQ(written.tensors()[0].type->name, "F16");
}

}  // namespace
}  // namespace lancet
