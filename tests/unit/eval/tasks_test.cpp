// Tasks of another program, as an evaluation has them run, and what they ask of a model.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/eval/evaluate.h"
#include "lancet/eval/task_runner.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::some_requests;
using testing::TinyModel;

using Ids = std::vector<TokenId>;

/// Knows one task, whose score is the mean log p of two continuations.
class OneTask final : public TaskRunner {
 public:
  void check(const TaskOptions& options) const override {
    for (const std::string& task : options.tasks)
      if (task != "known") throw ConfigError(task + ": no such task");
  }

  std::vector<TaskScore> run(const AskableModel& model, const TaskOptions& options) const override {
    const std::vector<Continuation> asked{{{1, 5}, {7, 9}}, {{1, 6, 8}, {4}}};
    double sum = 0;
    for (const ContinuationScore& score : model.score(asked)) sum -= score.nll;
    return {
        {.task = options.tasks.at(0), .metric = "log_p", .value = sum / 2, .questions = 2, .unit = Unit::kNats},
        {.task = options.tasks.at(0), .metric = "perplexity", .value = 3, .questions = 7, .better = Better::kLower}};
  }
};

class Tasks : public ::testing::Test {
 protected:
  EvaluationPlan plan(TaskOptions tasks, std::shared_ptr<const TaskRunner> runner) const {
    SideEffectOptions side_effects;
    side_effects.tasks = std::move(tasks);
    side_effects.task_runner = std::move(runner);
    return {*tiny_.tokenizer,
            requests_,
            {.protocols = {}, .generated_tokens = 5, .side_effects = std::move(side_effects)},
            tiny_.config.max_positions};
  }

  std::string refusal(TaskOptions tasks, std::shared_ptr<const TaskRunner> runner) const {
    try {
      plan(std::move(tasks), std::move(runner));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  TinyModel tiny_;
  CausalLM model_ = tiny_.load();
  const AskableModel asked_{model_, *tiny_.tokenizer, alone()};
  const std::vector<EditRequest> requests_ = some_requests(2);
};

TEST_F(Tasks, StandAmongTheSideEffectsBeforeAndAfter) {
  const EvaluationPlan questions = plan({.tasks = {"known"}, .shots = 3}, std::make_shared<OneTask>());
  const Evaluation before = questions.run(model_, "test", alone());
  {
    const torch::NoGradGuard no_grad;
    model_.weight({WeightKind::kDown, 3}).add_(0.3);
  }
  const Evaluation after = questions.run(model_, "test", alone(), &before);
  const auto mean = [](const Evaluation& evaluation, const char* name) {
    return *evaluation.side_effects.totals.at(name).mean();
  };
  const std::vector<Continuation> asked{{{1, 5}, {7, 9}}, {{1, 6, 8}, {4}}};
  const std::vector<ContinuationScore> now = score_continuations(model_, asked, "test", alone());
  EXPECT_NEAR(mean(after, "lm_eval.known.log_p"), -(now[0].nll + now[1].nll) / 2, 1e-12);
  EXPECT_NE(mean(before, "lm_eval.known.log_p"), mean(after, "lm_eval.known.log_p"));
  EXPECT_EQ(after.side_effects.totals.at("lm_eval.known.perplexity").count, 7);
  ASSERT_EQ(after.side_effects.metrics.size(), 2u);
  EXPECT_EQ(after.side_effects.metrics[1].better, Better::kLower);
  EXPECT_NE(after.side_effects.metrics[0].protocol.find("2 questions, 3 examples before each question"),
            std::string::npos)
      << after.side_effects.metrics[0].protocol;
}

TEST_F(Tasks, AreRefusedBeforeAnythingIsRun) {
  EXPECT_NE(refusal({.tasks = {"known"}}, nullptr).find("runs in Python"), std::string::npos);
  EXPECT_EQ(refusal({.tasks = {"known", "other"}}, std::make_shared<OneTask>()), "other: no such task");
  EXPECT_EQ(refusal({}, nullptr), "") << "no task is asked for";
}

TEST_F(Tasks, AskByIdsThatTheModelHas) {
  const TokenId most = tiny_.config.vocab_size;
  for (const Continuation& wrong :
       std::vector<Continuation>{{{}, {1}}, {{1}, {}}, {{1, -1}, {2}}, {{1}, {most}}, {{1}, Ids(100'000, 2)}})
    EXPECT_THROW(asked_.score(std::vector<Continuation>{wrong}), ConfigError);
  EXPECT_THROW(asked_.generate(std::vector<GenerateRow>{{{1}, 100'000}}, {}), ConfigError);
  EXPECT_THROW(asked_.generate(std::vector<GenerateRow>{{{}, 1}}, {}), ConfigError);
}

TEST_F(Tasks, EndARowWhereTheySaySo) {
  const std::vector<GenerateRow> rows{{{1, 5}, 8}, {{1, 6, 8}, 8}, {{1, 9}, 8}};
  const std::vector<Ids> whole = asked_.generate(rows, {});
  for (const Ids& ids : whole) ASSERT_EQ(ids.size(), 8u);
  const std::vector<Ids> cut = asked_.generate(
      rows, {}, [](int64_t row, std::span<const TokenId> added) { return row == 1 && added.size() == 3; });
  EXPECT_EQ(cut[0], whole[0]);
  EXPECT_EQ(cut[1], Ids(whole[1].begin(), whole[1].begin() + 3));
  EXPECT_EQ(cut[2], whole[2]);
  const std::vector<Ids> ended = asked_.generate(rows, {whole[0][4]});
  EXPECT_EQ(ended[0], Ids(whole[0].begin(), std::ranges::find(whole[0], whole[0][4])));
}

}  // namespace
}  // namespace lancet
