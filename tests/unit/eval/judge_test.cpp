// Answers that a program judges, within an evaluation.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lancet/eval/evaluate.h"
#include "support/core_support.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::config_error;
using testing::some_requests;
using testing::TinyModel;

/// Says yes to answers of an even number of bytes as JSON has them, and nothing of use to those of a multiple of three.
constexpr const char* kByBytes = R"(while read -r line; do
  rest="${line#*\"answer\":\"}"; answer="${rest%%\",\"prompt\":*}"; n=${#answer}
  if [ $((n % 3)) = 0 ]; then echo hm; elif [ $((n % 2)) = 0 ]; then echo yes; else echo no; fi
done)";

size_t json_bytes(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace).size() - 2;
}

TEST(JudgedEvaluations, CountVerdictsAndThoseThatAreUnclear) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const std::vector<EditRequest> requests = some_requests(8);
  EvaluationOptions options{.protocols = {"judge", "generation"}};
  options.judge = JudgeOptions{.command = {"env", "LC_ALL=C", "sh", "-c", kByBytes}};
  const EvaluationPlan plan(*tiny.tokenizer, requests, options, tiny.config.max_positions);
  const Evaluation evaluation = plan.run(model, "test", alone());
  double yes = 0, unclear = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const size_t n = json_bytes(evaluation.continuations[i]);
    const Tallies& found = evaluation.requests[i];
    const bool is_unclear = n % 3 == 0, is_yes = !is_unclear && n % 2 == 0;
    EXPECT_EQ(found.at("generation_judged").count, is_unclear ? 0 : 1) << evaluation.continuations[i];
    EXPECT_EQ(found.at("generation_judged").sum, is_yes ? 1 : 0) << evaluation.continuations[i];
    yes += is_yes ? 1 : 0;
    unclear += is_unclear ? 1 : 0;
  }
  EXPECT_GT(yes, 0);
  EXPECT_GT(unclear, 0);
  EXPECT_EQ(evaluation.totals.at("generation_judged").sum, yes);
  EXPECT_EQ(evaluation.totals.at("generation_judged_unclear").sum, unclear);
  EXPECT_EQ(evaluation.totals.at("generation_judged_unclear").count, 8);
  const std::string& how = evaluation.metrics.front().protocol;
  EXPECT_NE(how.find("says 'env LC_ALL=C sh -c "), std::string::npos) << how;
  EXPECT_NE(how.find("(prompt "), std::string::npos) << how;
  const std::vector<int64_t> some{2};  // texts are not generated for a part, so none is judged
  const Evaluation part = plan.scores_of(some).run(model, "test", alone(), &evaluation);
  EXPECT_EQ(part.totals.at("generation_judged_unclear").count, 0);
}

TEST(JudgedEvaluations, NeedAJudge) {
  const TinyModel tiny;
  const EvaluationOptions options{.protocols = {"judge"}};
  EXPECT_NE(
      config_error([&] { EvaluationPlan(*tiny.tokenizer, some_requests(2), options, 100); }).find("evaluate.judge"),
      std::string::npos);
}

}  // namespace
}  // namespace lancet
