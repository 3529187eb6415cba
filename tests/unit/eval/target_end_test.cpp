// What free generation has to end with to be exactly the target.
#include <gtest/gtest.h>

#include "lancet/eval/evaluate.h"
#include "lancet/models/generate.h"
#include "support/core_support.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::config_error;
using testing::TinyModel;

TEST(TargetEndOfJudging, MakesExactMeanThatTheModelStops) {
  TinyModel tiny;
  const CausalLM model = tiny.load();
  std::vector<EditRequest> requests = testing::some_requests(5);
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(testing::demo_model_folder());  // the tiny one has no EOS
  const auto plan_of = [&](const Tokenizer& of, JudgedEnd end) {
    return EvaluationPlan(of, requests, {.protocols = {"generation"}, .generated_tokens = 5, .target_end = end},
                          tiny.config.max_positions);
  };
  const auto exact = [&](const ModelAnswers& answers, const Tokenizer& of, JudgedEnd end) {
    return plan_of(of, end).judge(answers).requests[0].at("generation_exact").mean();
  };
  const Evaluation first = plan_of(*tokenizer, JudgedEnd::kNone).run(model, "test", alone());
  ModelAnswers answers = first.answers;
  EXPECT_FALSE(answers.texts[0]->has_ended) << "the limit ended it";
  answers.texts[0]->continuation = requests[0].target;
  EXPECT_EQ(exact(answers, *tokenizer, JudgedEnd::kNone), 1);
  EXPECT_EQ(exact(answers, *tokenizer, JudgedEnd::kEos), 0);
  EXPECT_EQ(exact(answers, *tokenizer, JudgedEnd::kAuto), 0);
  EXPECT_EQ(exact(answers, *tiny.tokenizer, JudgedEnd::kAuto), 1);
  EXPECT_NE(config_error([&] { plan_of(*tiny.tokenizer, JudgedEnd::kEos); }).find("evaluate.target_end: eos"),
            std::string::npos);
  answers.texts[0]->has_ended = true;
  EXPECT_EQ(exact(answers, *tokenizer, JudgedEnd::kEos), 1);
  answers.texts[0]->continuation += ". And more";
  EXPECT_EQ(exact(answers, *tokenizer, JudgedEnd::kNone), 1);
  EXPECT_EQ(exact(answers, *tokenizer, JudgedEnd::kEos), 0) << "the whole counts";

  const std::vector<GenerateRow> rows{{tokenizer->ids(requests[0].prompt.text), 5}};
  tiny.config.eos_ids = {generate(model, rows, {})[0][3]};
  EXPECT_TRUE(plan_of(*tokenizer, JudgedEnd::kEos).run(tiny.load(), "test", alone()).answers.texts[0]->has_ended);
}

}  // namespace
}  // namespace lancet
