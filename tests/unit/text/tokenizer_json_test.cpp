// What a tokenizer.json must not be: each mistake is an error that names its place.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "support/text_fixture.h"

namespace lancet {
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;
using testing::open_spec;
using testing::tiny_spec;

/// The error for the tiny tokenizer with `value` at `place` (a JSON pointer).
std::string error_with(const char* place, const json& value) {
  json spec = tiny_spec();
  spec[json::json_pointer(place)] = value;
  return error_of<TokenizerError>([&] { open_spec(spec); });
}

json type(const char* name) { return {{"type", name}}; }

TEST(TokenizerJson, RefusesOtherModels) {
  for (const char* name : {"WordPiece", "WordLevel"}) {
    EXPECT_TRUE(contains(error_with("/model", type(name)), {"model.type", name, "supported: BPE, Unigram"}));
  }
}

TEST(TokenizerJson, NamesComponentsThatItDoesNotKnow) {
  EXPECT_TRUE(contains(error_with("/normalizer/normalizers/1", type("Reverse")),
                       {"normalizer.normalizers[1].type: \"Reverse\"", "supported: Sequence, Prepend, Replace, NFC"}));
  EXPECT_TRUE(contains(error_with("/pre_tokenizer", type("UnicodeScripts")),
                       {"pre_tokenizer.type: \"UnicodeScripts\"", "Digits, Punctuation"}));
  EXPECT_TRUE(contains(error_with("/post_processor", type("Wrap")), {"\"Wrap\"", "RobertaProcessing"}));
  EXPECT_TRUE(contains(error_with("/decoder/decoders/2", type("CTC")), {"decoder.decoders[2].type: \"CTC\""}));
}

TEST(TokenizerJson, NamesKeysThatItDoesNotKnow) {
  EXPECT_TRUE(contains(error_with("/extra", 1), {"the key \"extra\""}));
  EXPECT_TRUE(contains(error_with("/model/cache", 1), {"model: the key \"cache\""}));
  EXPECT_TRUE(
      contains(error_with("/normalizer/normalizers/0/times", 2), {"normalizer.normalizers[0]: the key \"times\""}));
  EXPECT_TRUE(contains(error_with("/added_tokens/0/color", "red"), {"added_tokens[0]: the key \"color\""}));
  EXPECT_TRUE(
      contains(error_with("/post_processor/single/0/Token", 1), {"post_processor.single[0]: the key \"Token\""}));
}

TEST(TokenizerJson, RefusesSettingsThatWouldChangeIds) {
  EXPECT_TRUE(contains(error_with("/model/dropout", 0.1), {"model.dropout"}));
  EXPECT_TRUE(contains(error_with("/model/continuing_subword_prefix", "##"),
                       {"model.merges[0]", "does not begin with the continuing_subword_prefix \"##\""}));
  const json regex = {{"Regex", "(?i)a"}};
  EXPECT_TRUE(contains(error_with("/normalizer/normalizers/1/pattern", regex), {"pattern.Regex", "not supported"}));
  EXPECT_TRUE(
      contains(error_with("/pre_tokenizer", {{"type", "FixedLength"}, {"length", 0}}), {"pre_tokenizer.length"}));
  EXPECT_TRUE(contains(error_with("/pre_tokenizer", {{"type", "Punctuation"}, {"behavior", "Kept"}}),
                       {"pre_tokenizer.behavior", "MergedWithNext"}));
  EXPECT_TRUE(contains(error_with("/version", "2.0"), {"version: expected 1.0"}));
  const json metaspace = {
      {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}, {"add_prefix_space", false}};
  EXPECT_TRUE(contains(error_with("/pre_tokenizer", metaspace), {"pre_tokenizer.add_prefix_space", "contradicts"}));
}

TEST(TokenizerJson, AcceptsSettingsThatChangeNothing) {
  EXPECT_EQ(error_with("/model/dropout", 0.0), "no error");
  EXPECT_EQ(error_with("/model/continuing_subword_prefix", ""), "no error");
  EXPECT_EQ(error_with("/truncation/max_length", 4), "no error");
  json spec = tiny_spec();
  spec["model"].erase("type");
  EXPECT_EQ(open_spec(spec)->ids("Paris"), open_spec(tiny_spec())->ids("Paris"));
}

TEST(TokenizerJson, ReadsMergesOfBothSpellings) {
  json spec = tiny_spec();
  json lines = {"#version: 0.2"};
  for (const json& merge : spec["model"]["merges"]) {
    lines.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  spec["model"]["merges"] = lines;
  EXPECT_EQ(open_spec(spec)->ids("Paris is"), open_spec(tiny_spec())->ids("Paris is"));
}

TEST(TokenizerJson, RefusesMergesThatDoNotFitTheVocabulary) {
  EXPECT_TRUE(contains(error_with("/model/merges/-", {"P", "s"}), {"model.merges[6]", "\"Ps\" is not in model.vocab"}));
  EXPECT_TRUE(contains(error_with("/model/merges/0", "a b c"), {"model.merges[0]", "one space"}));
  EXPECT_TRUE(contains(error_with("/model/merges/0", {"a"}), {"model.merges[0]", "two pieces"}));
  EXPECT_TRUE(contains(error_with("/model/unk_token", "<none>"), {"model.unk_token"}));
}

TEST(TokenizerJson, RefusesIdsThatContradictEachOther) {
  EXPECT_TRUE(contains(error_with("/model/vocab/P", 3), {"the id 3 has two pieces"}));
  EXPECT_TRUE(contains(error_with("/model/vocab/x", 2000000000), {"largest id is 2000000000"}));
  EXPECT_TRUE(contains(error_with("/model/vocab/x", 3000000000), {"model.vocab.x"}));
  EXPECT_TRUE(contains(error_with("/model/vocab/x", -1), {"model.vocab.x"}));
  EXPECT_TRUE(contains(error_with("/post_processor/special_tokens/<s>/ids/0", 7777), {"7777"}));
}

/// As the tokenizers library does, which does not look at the ids that the file gives them.
TEST(TokenizerJson, NumbersAddedTokensByTheVocabularyAndTheFilesOrder) {
  class Listener final : public Reporter {
   public:
    std::string warnings;

   private:
    void on_log(LogLevel, std::string_view text) override { warnings += text; }
    void on_progress(const StageProgress&) override {}
  };
  Listener listener;
  const ReporterScope scope(listener);
  json spec = tiny_spec();
  spec["added_tokens"][1]["id"] = 2;  // "<s>", a piece with the id 1
  for (const auto& [content, id] : {std::pair("[B]", 9001), std::pair("[A]", 9000)}) {
    json token = spec["added_tokens"][0];
    token["content"] = content;
    token["id"] = id;
    spec["added_tokens"].push_back(token);
  }
  const auto tokenizer = open_spec(spec);
  const auto n_pieces = static_cast<TokenId>(spec["model"]["vocab"].size());
  EXPECT_EQ(tokenizer->ids("<s>[A][B]", SpecialTokens::kNone), (std::vector<TokenId>{1, n_pieces + 1, n_pieces}));
  EXPECT_TRUE(contains(listener.warnings,
                       {"tokenizer.json: added_tokens", "\"<s>\" (2 there, 1 here)", "\"[B]\" (9001 there"}));
}

TEST(TokenizerJson, RefusesDamagedPrecompiledMaps) {
  const auto with = [](const char* charsmap) {
    return error_with("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", charsmap}});
  };
  EXPECT_TRUE(contains(with("%%"), {"normalizer.precompiled_charsmap: not base64"}));
  EXPECT_TRUE(contains(with("AA=="), {"shorter than its length field"}));
  EXPECT_TRUE(contains(with("/////w=="), {"the length of its table does not fit its size"}));
  EXPECT_TRUE(contains(with("AAAAAA=="), {"its table is empty"}));
  EXPECT_EQ(with("BAAAAP////8="), "no error");  // leads out of itself, which only a text shows
}

TEST(TokenizerJson, RefusesUnigramModelsThatDoNotFit) {
  const auto with = [](const json& changes) {
    json model =
        json::parse(R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.5], ["<s>", -2]]})");
    model.update(changes);
    json spec = tiny_spec();
    spec["model"] = model;
    spec["added_tokens"] = json::array();
    spec["post_processor"] = nullptr;
    return error_of<TokenizerError>([&] { open_spec(spec)->ids("ab"); });
  };
  EXPECT_EQ(with(json::object()), "no error");
  EXPECT_TRUE(contains(with({{"unk_id", 3}}), {"model.unk_id: no piece has the id 3 (3 pieces)"}));
  EXPECT_TRUE(contains(with({{"unk_id", nullptr}}), {"no piece has the character", "model.unk_id"}));
  EXPECT_TRUE(contains(with({{"vocab", json::array({json::array({"a", "b"})})}}),
                       {"model.vocab[0]: expected a piece and its score"}));
  EXPECT_TRUE(contains(with({{"alpha", 0.1}}), {"model.alpha"}));
}

TEST(TokenizerJson, RefusesTemplatesWithoutThePlaceOfTheText) {
  json spec = tiny_spec();
  spec["post_processor"]["single"].erase(1);
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { open_spec(spec); }), {"no place for the text"}));
  EXPECT_TRUE(contains(error_with("/post_processor/single/1/Sequence/id", "B"), {"exactly once"}));
  EXPECT_TRUE(contains(error_with("/post_processor/special_tokens", json::object()), {"\"<s>\" is missing"}));
}

TEST(TokenizerJson, RefusesValuesOfTheWrongKind) {
  EXPECT_TRUE(contains(error_with("/model/vocab", json::array()), {"model.vocab: expected an object"}));
  EXPECT_TRUE(contains(error_with("/model/byte_fallback", "yes"), {"model.byte_fallback: expected true or false"}));
  EXPECT_TRUE(contains(error_with("/added_tokens/0/content", 5), {"added_tokens[0].content: expected a string"}));
  EXPECT_TRUE(contains(error_with("/decoder", "none"), {"decoder: expected an object"}));
  EXPECT_TRUE(contains(error_with("/model", nullptr), {"model: expected an object"}));
  EXPECT_TRUE(contains(error_with("", json::array()), {"expected an object"}));
  EXPECT_TRUE(contains(error_with("", json::object()), {"the key \"model\" is missing"}));
}

TEST(TokenizerJson, RefusesPipesAtOnce) {
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "tokenizer.model"}) {
    const testing::TempDir folder;
    if (std::string_view(name) == "tokenizer_config.json")
      testing::write_file(folder / "tokenizer.json", tiny_spec().dump());
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
    EXPECT_TRUE(contains(error_of<TokenizerError>([&] { open_tokenizer(folder.path()); }),
                         {(folder / name).string(), "cannot be read", "a pipe"}));
  }
}

TEST(TokenizerJson, RefusesTextThatIsNotJson) {
  const testing::TempDir folder;
  testing::write_file(folder / "tokenizer.json", "{\"version\": ");
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { open_tokenizer(folder.path()); }), {"not valid JSON"}));
}

/// The last of two would win without a word, and other ids with it.
TEST(TokenizerJson, RefusesAKeyThatStandsTwice) {
  const testing::TempDir folder;
  std::string text = tiny_spec().dump();
  text.insert(1, "\"version\": \"0.9\", ");
  testing::write_file(folder / "tokenizer.json", text);
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { open_tokenizer(folder.path()); }),
                       {"tokenizer.json", "the key 'version' stands twice in one object"}));
}

}  // namespace
}  // namespace lancet
