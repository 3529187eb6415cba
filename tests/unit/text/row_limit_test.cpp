// A tokenizer with more ids than the model has rows: texts without such an id are as before, others are refused.
#include "lancet/text/row_limit.h"

#include <gtest/gtest.h>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "support/text_fixture.h"

namespace lancet {
namespace {

using testing::contains;
using testing::error_of;
using testing::open_spec;
using testing::tiny_spec;

class Warnings final : public Reporter {
 public:
  std::vector<std::string> texts;

 private:
  void on_log(LogLevel level, std::string_view text) override {
    if (level == LogLevel::kWarning) texts.emplace_back(text);
  }
  void on_progress(const StageProgress&) override {}
};

/// The tiny tokenizer with "[NEW]", whose id is the first behind the pieces.
nlohmann::json spec_with_new_token() {
  nlohmann::json spec = tiny_spec();
  nlohmann::json token = spec["added_tokens"][0];
  token["content"] = "[NEW]";
  token["id"] = spec["model"]["vocab"].size();
  spec["added_tokens"].push_back(token);
  return spec;
}

TEST(RowLimit, RefusesTheTextsThatHaveAnIdWithoutARow) {
  Warnings warnings;
  const ReporterScope scope(warnings);
  const auto rows = static_cast<int64_t>(tiny_spec()["model"]["vocab"].size());
  const auto plain = open_spec(spec_with_new_token());
  const auto limited = limit_to_rows(open_spec(spec_with_new_token()), rows, "model");
  ASSERT_EQ(warnings.texts.size(), 1U);
  EXPECT_TRUE(contains(warnings.texts[0], {"model: the tokenizer has " + std::to_string(rows + 1) + " ids",
                                           "rows for " + std::to_string(rows), "one of the last 1 is refused"}));
  EXPECT_EQ(limited->ids("Paris is"), plain->ids("Paris is"));
  EXPECT_EQ(limited->vocab_size(), rows + 1);
  EXPECT_EQ(limited->piece(rows), "[NEW]");
  EXPECT_EQ(limited->bos_id(), plain->bos_id());
  EXPECT_EQ(limited->adds_bos(), plain->adds_bos());
  EXPECT_EQ(limited->decode(plain->ids("Paris is")), "Paris is");
  EXPECT_TRUE(
      contains(error_of<TokenizerError>([&] { limited->ids("Paris [NEW] is"); }),
               {"model: the token \"[NEW]\" at byte 6 of the text \"Paris [NEW] is\"",
                "has the id " + std::to_string(rows), "below " + std::to_string(rows), "write the text without"}));
}

TEST(RowLimit, SaysWhenEveryTextHasSuchAnId) {
  Warnings warnings;
  const ReporterScope scope(warnings);
  const auto limited = limit_to_rows(open_spec(tiny_spec()), 1, "model");  // BOS has the id 1
  EXPECT_TRUE(
      contains(error_of<TokenizerError>([&] { limited->ids(""); }),
               {"\"<s>\" that the tokenizer puts around every text has the id 1", "the model was trained with"}));
}

TEST(RowLimit, LeavesATokenizerAloneThatFitsOrIsSmaller) {
  Warnings warnings;
  const ReporterScope scope(warnings);
  for (const int64_t more : {0, 64}) {
    auto tokenizer = open_spec(tiny_spec());
    const Tokenizer* const before = tokenizer.get();
    EXPECT_EQ(limit_to_rows(std::move(tokenizer), before->vocab_size() + more, "model").get(), before);
  }
  EXPECT_TRUE(warnings.texts.empty());
}

}  // namespace
}  // namespace lancet
