#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/eval/evaluate.h"
#include "lancet/text/prompt.h"
#include "lancet/text_metrics/answer_match.h"
#include "support/core_support.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::config_error;
using testing::some_requests;
using testing::TinyModel;

TEST(Metrics, PoolCountsEveryOutcomeOnce) {
  const std::vector<Tallies> requests{{{"a", {1, 1}}, {"b", {}}}, {{"a", {1, 3}}}};
  const Tallies all = pooled(requests);
  EXPECT_DOUBLE_EQ(*all.at("a").mean(), 0.5);
  EXPECT_FALSE(all.at("b").mean());
}

TEST(Metrics, BootstrapIntervalsAreThoseOfABinomial) {
  // 400 requests, 30 % of them right: the standard error is 0.0229.
  std::vector<Tallies> requests(400);
  for (size_t i = 0; i < requests.size(); ++i) requests[i]["share"].add(i % 10 < 3 ? 1 : 0);
  const Interval interval = bootstrap_intervals(requests).at("share");
  EXPECT_NEAR(interval.low, 0.3 - 1.96 * 0.0229, 0.008);
  EXPECT_NEAR(interval.high, 0.3 + 1.96 * 0.0229, 0.008);
}

TEST(Metrics, BootstrapNeedsTenRequests) {
  std::vector<Tallies> requests(10);
  for (Tallies& request : requests) request["same"].add(0.5);
  for (size_t i = 0; i < 9; ++i) requests[i]["nine"].add(1);
  const auto intervals = bootstrap_intervals(requests);
  EXPECT_EQ(std::pair(intervals.at("same").low, intervals.at("same").high), std::pair(0.5, 0.5));
  EXPECT_FALSE(intervals.contains("nine")) << "100 to 100 % of nine right ones says nothing";
}

TEST(Protocols, AreFoundByTheirMetrics) {
  EXPECT_EQ(find_protocol_of("specificity_argmax")->name, "specificity");
  EXPECT_EQ(find_protocol_of("specificity"), nullptr);
  EXPECT_EQ(find_protocol_of("subject_kept")->name, "subject");
  std::set<std::string_view> names;
  for (const ProtocolRow& row : protocol_table())
    for (const std::string_view metric : row.metrics) {
      EXPECT_EQ(find_protocol_of(metric), &row) << metric;
      EXPECT_TRUE(names.insert(metric).second) << metric;
    }
}

TEST(ModelQuestions, AsksEqualQuestionsOnce) {
  ModelQuestions questions;
  questions.begin_request();
  EXPECT_EQ(questions.score({{1, 2}, {3}}), 0u);
  EXPECT_EQ(questions.score({{1}, {2, 3}}), 1u);
  questions.begin_request();
  EXPECT_EQ(questions.score({{1, 2}, {3}}), 0u);
  EXPECT_EQ(questions.generate({{1}, 5}), 0u);
  EXPECT_EQ(questions.generate({{1}, 5, Decoding::kTopK5}), 1u);
  EXPECT_EQ(questions.generate({{1}, 5}), 0u);
  EXPECT_EQ(questions.continuations().size(), 2u);
  EXPECT_EQ(questions.continuations_of(1), std::vector<size_t>{0});
}

struct LongText {
  const char* protocol;
  void (*lengthen)(EditRequest& request, const std::string& prompt);
  const char* told;     ///< words that follow "request 1: 'word word ...' and "
  size_t tokens = 121;  ///< least tokens of the prompt
};

/// Makes a text of at least so many tokens.
std::string long_text(const Tokenizer& tokenizer, size_t tokens) {
  std::string text = "word";
  while (tokenizer.ids(text).size() < tokens) text += " word";
  return text;
}

using Request = EditRequest;

const LongText kLongTexts[] = {
    {"efficacy", [](Request& r, const std::string& prompt) { r.prompt.text = prompt; }, "'target of 1'"},
    {"efficacy", [](Request& r, const std::string& prompt) { r.target = prompt; }, "'word word"},
    {"efficacy", [](Request& r, const std::string& prompt) { r.target_true = prompt; }, "'word word"},
    {"paraphrase", [](Request& r, const std::string& prompt) { r.paraphrases = {prompt}; }, "'target of 1'"},
    {"specificity", [](Request& r, const std::string& prompt) { r.neighborhood = {prompt}; }, "'target of 1'"},
    {"generation", [](Request& r, const std::string& prompt) { r.prompt.text = prompt; }, "20 new tokens", 110},
    {"distracted", [](Request& r, const std::string& prompt) { r.prompt.text = prompt; }, "20 new tokens", 110},
    {"chat", [](Request& r, const std::string& prompt) { r.prompt.text = prompt; }, "20 new tokens as a chat", 110},
    {"thinking", [](Request& r, const std::string& prompt) { r.prompt.text = prompt; }, "30 new tokens as a chat", 100},
    {"judge", [](Request& r, const std::string& prompt) { r.prompt.text = prompt; }, "20 new tokens", 110},
    {"long_form", [](Request& r, const std::string& prompt) { r.paraphrases = {prompt}; }, "30 new tokens", 100},
    {"easyedit",
     [](Request& r, const std::string& prompt) {
       r.portability = {{"s", {{prompt, {"a"}}}}};
     },
     "'a'"},
    {"easyedit",
     [](Request& r, const std::string& prompt) {
       r.locality = {{"s", {{"b", {prompt}}}}};
     },
     "'word word"},
    {"zsre",
     [](Request& r, const std::string& prompt) {
       r.locality = {{"s", {{prompt, {"a"}}}}};
     },
     "'a'"},
    {"ultraedit",
     [](Request& r, const std::string& prompt) {
       r.locality = {{"s", {{prompt, {"a"}}}}};
     },
     "'a'"},
    {"mquake",
     [](Request& r, const std::string& prompt) {
       r.multihop = {{prompt, {"a"}}};
     },
     "20 new tokens"},
    {"counterfact", [](Request& r, const std::string& prompt) { r.generation_prompts = {prompt}; }, " new tokens"},
    {"counterfact", [](Request& r, const std::string& prompt) { r.neighborhood = {prompt}; }, "'target of 1'"},
};

TEST(LongTexts, AreRefusedWhereverTheyAreMeasured) {
  const TinyModel tiny;
  for (const LongText& c : kLongTexts) {
    SCOPED_TRACE(c.protocol);
    std::vector<EditRequest> requests = some_requests(2);
    for (EditRequest& request : requests) request.target_true.reset();
    requests[1].target = "target of 1";
    c.lengthen(requests[1], long_text(*tiny.tokenizer, c.tokens));
    const EvaluationOptions options{.protocols = {c.protocol},
                                    .generated_tokens = 20,
                                    .chat_template = {.model = {}, .by_hand = "USER: {}"},
                                    .thinking_tokens = 30,
                                    .judge = JudgeOptions{.command = {"true"}},
                                    .long_form = {.tokens = 30}};
    const std::string message = config_error([&] { EvaluationPlan(*tiny.tokenizer, requests, options, 120); });
    EXPECT_EQ(message.find("requests: expected texts within the model's 120 positions (config.json: "
                           "max_position_embeddings), got request 1: '"),
              0U)
        << message;
    EXPECT_NE(message.find(c.told), std::string::npos) << message;
    EXPECT_NO_THROW(EvaluationPlan(*tiny.tokenizer, requests, options, 400));
    const EvaluationOptions others{.protocols = {}};
    EXPECT_NO_THROW(EvaluationPlan(*tiny.tokenizer, requests, others, 120)) << "what is not measured may be longer";
  }
}

TEST(LongTexts, AreToldByTheFirstOfThem) {
  const TinyModel tiny;
  const EvaluationOptions options{.protocols = {"efficacy", "zsre"}};
  const std::string message = config_error([&] { EvaluationPlan(*tiny.tokenizer, some_requests(9), options, 2); });
  EXPECT_NE(message.find(" and "), std::string::npos);
  EXPECT_NE(message.find(" more; shorten or leave them out"), std::string::npos) << message;
  EXPECT_LT(message.size(), 1000U);
}

class Evaluations : public ::testing::Test {
 protected:
  TinyModel tiny_;
  CausalLM model_ = tiny_.load();
  std::vector<EditRequest> requests_ = some_requests(5);

  EvaluationPlan plan(std::vector<std::string> protocols) const {
    return {*tiny_.tokenizer, requests_, {.protocols = std::move(protocols)}, tiny_.config.max_positions};
  }
  EvaluationPlan chat_plan(std::vector<std::string> protocols, const std::string& by_hand) const {
    return {*tiny_.tokenizer,
            requests_,
            {.protocols = std::move(protocols), .chat_template = {.model = tiny_.folder.path(), .by_hand = by_hand}},
            tiny_.config.max_positions};
  }

  /// One pass over prompt and target, position by position.
  ContinuationScore slow_score(const std::string& prompt, const std::string& target) const {
    std::vector<TokenId> ids = tiny_.tokenizer->ids(prompt);
    const std::vector<TokenId> wanted = continue_prompt(*tiny_.tokenizer, prompt, target, "test").target;
    ContinuationScore score;
    for (const TokenId id : wanted) {
      const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{ids});
      const Tensor h_BTD =
          model_.run_layers(model_.embed(batch.ids_BT, batch.sequence), batch.sequence, model_.all_layers());
      const Tensor logits_V = model_.logits(h_BTD.select(1, -1)).squeeze(0).log_softmax(0);
      score.nll -= logits_V[id].item<double>() / static_cast<double>(wanted.size());
      score.argmax.push_back(logits_V.argmax().item<int64_t>());
      ids.push_back(id);
    }
    return score;
  }
};

TEST_F(Evaluations, CompareTheTargetsOfEveryPrompt) {
  requests_[1].paraphrases = {"Someone from", "Many people say that"};
  requests_[2].neighborhood = {"Tina Arena lives in", "A piano is"};
  requests_[3].target_true.reset();
  const Evaluation evaluation = plan({"specificity", "efficacy", "paraphrase"}).run(model_, "test", alone());
  ASSERT_EQ(evaluation.metrics.front().name, "specificity_prob");
  Tallies expected;
  const auto judge = [&](const std::string& name, const std::string& prompt, const std::string& wanted,
                         const std::optional<std::string>& other) {
    const ContinuationScore score = slow_score(prompt, wanted);
    const std::vector<TokenId> ids = continue_prompt(*tiny_.tokenizer, prompt, wanted, "test").target;
    expected[name + "_argmax"].add(score.argmax == ids ? 1 : 0);
    if (!other) return;
    const ContinuationScore rival = slow_score(prompt, *other);
    expected[name + "_prob"].add(score.nll < rival.nll ? 1 : 0);
    if (name == "paraphrase")
      expected["paraphrase_old"].add(
          rival.argmax == continue_prompt(*tiny_.tokenizer, prompt, *other, "test").target ? 1 : 0);
  };
  for (const EditRequest& request : requests_) {
    judge("efficacy", request.prompt.text, request.target, request.target_true);
    for (const std::string& prompt : request.paraphrases)
      judge("paraphrase", prompt, request.target, request.target_true);
    for (const std::string& prompt : request.neighborhood)
      judge("specificity", prompt, *request.target_true, request.target);
  }
  ASSERT_EQ(evaluation.totals.size(), 7u);
  for (const auto& [name, tally] : evaluation.totals) {
    EXPECT_EQ(tally.sum, expected[name].sum) << name;
    EXPECT_EQ(tally.count, expected[name].count) << name;
  }
}

TEST_F(Evaluations, BeliefIsTheLettersProbabilityInEveryOrder) {
  requests_[1].target_true.reset();                 // nothing to believe before
  requests_[3].target_true = requests_[3].target;   // nothing to choose
  requests_[4].target = requests_[0].target + ".";  // of requests 2 and 3 on, no option twice
  for (const OptionOrders which : {OptionOrders::kRotations, OptionOrders::kAll}) {
    const EvaluationPlan plan(*tiny_.tokenizer, requests_, {.protocols = {"belief"}, .belief_orders = which},
                              tiny_.config.max_positions);
    const Evaluation evaluation = plan.run(model_, "test", alone());
    for (const size_t i : {1, 3}) EXPECT_EQ(evaluation.requests[i].at("belief_prob").count, 0);
    const std::vector<std::string> options{"the city of Rome", "a piano", "Australia", "London."};
    ASSERT_EQ(requests_[2].target, options[0]);
    ASSERT_EQ(*requests_[2].target_true, options[1]);
    Tally prob, choice, old;
    std::vector<size_t> order{0, 1, 2, 3};
    do {
      const bool is_turned = (order[1] + 3 - order[0]) % 4 == 0 && (order[2] + 3 - order[1]) % 4 == 0;
      if (which == OptionOrders::kRotations && !is_turned) continue;
      std::string prompt = requests_[2].prompt.text;
      for (size_t at = 0; at < 4; ++at)
        prompt += cat("\n", std::string("ABCD").substr(at, 1), ". ", options[order[at]]);
      std::vector<double> chance(4);
      for (size_t at = 0; at < 4; ++at) {
        const ContinuationScore score = slow_score(prompt + "\nAnswer:", std::string("ABCD").substr(at, 1));
        chance[order[at]] = std::exp(-score.nll * static_cast<double>(score.argmax.size()));
      }
      prob.add(chance[0] / (chance[0] + chance[1] + chance[2] + chance[3]));
      const auto best = std::max_element(chance.begin(), chance.end()) - chance.begin();
      choice.add(best == 0 ? 1 : 0);
      old.add(best == 1 ? 1 : 0);
    } while (std::next_permutation(order.begin(), order.end()));
    const Tallies& found = evaluation.requests[2];
    EXPECT_EQ(found.at("belief_prob").count, which == OptionOrders::kAll ? 24 : 4);
    EXPECT_NEAR(found.at("belief_prob").mean().value(), prob.mean().value(), 1e-5);
    EXPECT_EQ(found.at("belief_choice").mean(), choice.mean());
    EXPECT_EQ(found.at("belief_old").mean(), old.mean());
  }
}

TEST_F(Evaluations, MeasureAPartAsInTheWhole) {
  const EvaluationPlan whole = plan({"efficacy", "generation"});
  const Evaluation all = whole.run(model_, "test", alone());
  ASSERT_EQ(all.continuations.size(), 5u);
  const std::vector<int64_t> some{3, 1};
  const Evaluation part = whole.scores_of(some).run(model_, "test", alone(), &all);
  EXPECT_TRUE(part.continuations.empty());
  ASSERT_EQ(part.requests.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Tallies& own = all.requests[static_cast<size_t>(some[i])];
    EXPECT_EQ(part.requests[i].at("efficacy_prob").sum, own.at("efficacy_prob").sum);
    EXPECT_EQ(part.requests[i].at("generation_exact").count, 0);
    EXPECT_EQ(own.at("generation_exact").count, 1);
  }
}

TEST_F(Evaluations, SayHowLikelyEveryTargetIs) {
  const Evaluation evaluation = plan({"paraphrase", "efficacy"}).run(model_, "test", alone());
  ASSERT_EQ(evaluation.target_probabilities.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    const ContinuationScore score = slow_score(requests_[i].prompt.text, requests_[i].target);
    const double expected = std::exp(-score.nll * static_cast<double>(score.argmax.size()));
    EXPECT_NEAR(evaluation.target_probabilities[i], expected, 1e-9 * expected);
  }
  EXPECT_TRUE(plan({"paraphrase"}).run(model_, "test", alone()).target_probabilities.empty());
}

TEST_F(Evaluations, TellByTheirKeysWhetherTheSameWasAsked) {
  const auto keys = [&] {
    std::map<std::string, std::string> asked;
    for (const MetricRow& row : plan({"efficacy", "paraphrase"}).run(model_, "test", alone()).metrics)
      asked[row.name] = row.asked;
    return asked;
  };
  const auto before = keys();
  EXPECT_EQ(before, keys());
  requests_[1].paraphrases = {"Someone from"};
  const auto after = keys();
  EXPECT_EQ(before.at("efficacy_prob"), after.at("efficacy_prob"));
  EXPECT_NE(before.at("paraphrase_argmax"), after.at("paraphrase_argmax"));
}

TEST_F(Evaluations, RefuseAnswersThatAreNotFinite) {
  const auto failure = [&](const std::vector<std::string>& protocols, const Evaluation* before) {
    try {
      plan(protocols).run(model_, "evaluate after", alone(), before);
    } catch (const NumericError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Evaluation before = plan({"efficacy"}).run(model_, "test", alone());
  const WeightId id{WeightKind::kUp, 0};
  const Tensor whole = model_.weight(id);
  Tensor damaged = whole.clone();
  damaged[0][0] = std::nan("");
  model_.set_weight(id, damaged);
  const std::string of_scores = failure({"efficacy"}, &before);
  for (const char* part : {"evaluate after: request ", "log p of a target is", "model.layers.0.mlp.up_proj.weight"})
    EXPECT_NE(of_scores.find(part), std::string::npos) << of_scores;
  EXPECT_NE(failure({"generation"}, nullptr).find("generation: the model's logits are not finite"), std::string::npos);
}

TEST_F(Evaluations, FindTheTargetInWhatIsWritten) {
  const Evaluation before = plan({"generation"}).run(model_, "test", alone());
  requests_[0].target = before.continuations[0];
  requests_[1].target_aliases = {before.continuations[1]};
  const Evaluation evaluation = plan({"generation"}).run(model_, "test", alone());
  const auto outcome = [&](size_t request, const char* metric) {
    return evaluation.requests[request].at(metric).mean();
  };
  ASSERT_NE(normalized_answer(before.continuations[0]), "");
  EXPECT_EQ(outcome(0, "generation_contains"), 1);
  EXPECT_EQ(outcome(0, "generation_starts"), 1);
  EXPECT_EQ(outcome(0, "generation_alias"), std::nullopt);
  EXPECT_EQ(outcome(1, "generation_contains"), 1);
  EXPECT_EQ(outcome(1, "generation_starts"), 1) << "by its other name";
  EXPECT_EQ(outcome(1, "generation_exact"), 0);
  EXPECT_EQ(outcome(2, "generation_contains"), 0);
  EXPECT_EQ(outcome(2, "generation_starts"), 0);
}

TEST_F(Evaluations, SayHowManyParaphrasesTheModelAnswersWithWhatItKnew) {
  requests_[0].paraphrases = {"Someone from"};
  const Evaluation known = plan({"paraphrase"}).run(model_, "test", alone());
  EXPECT_EQ(known.requests[0].at("paraphrase_old").count, 1);
  for (EditRequest& request : requests_) request.target_true.reset();
  const Evaluation unknown = plan({"paraphrase"}).run(model_, "test", alone());
  EXPECT_FALSE(unknown.requests[0].contains("paraphrase_old")) << "no record says what it knew";
}

TEST_F(Evaluations, PutPromptsToInstructModelsAsAUsersMessages) {
  const std::string by_hand = "USER: {} ASSISTANT:";
  const Evaluation chat = chat_plan({"chat", "generation"}, by_hand).run(model_, "test", alone());
  for (EditRequest& request : requests_) request.prompt.text = "USER: " + request.prompt.text + " ASSISTANT:";
  const Evaluation wrapped = plan({"generation"}).run(model_, "test", alone());
  ASSERT_EQ(chat.continuations.size(), requests_.size());
  EXPECT_EQ(chat.continuations, wrapped.continuations);  // the first protocol's are shown
  for (size_t i = 0; i < requests_.size(); ++i)
    EXPECT_EQ(chat.requests[i].at("chat_contains").sum, wrapped.requests[i].at("generation_contains").sum);
  EXPECT_NE(chat.metrics.front().protocol.find("template: by hand"), std::string::npos);
}

TEST_F(Evaluations, RefuseAChatTemplateThatIsNotThere) {
  EXPECT_THROW(chat_plan({"chat"}, ""), TokenizerError);
  EXPECT_NO_THROW(chat_plan({"generation"}, ""));
}

TEST_F(Evaluations, NameEveryRequestThatDoesNotSplit) {
  requests_[1].target = "";
  requests_[4].prompt.text = "";
  try {
    plan({"efficacy"});
    FAIL() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("request 1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lancet
