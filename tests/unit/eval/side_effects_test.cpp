#include "lancet/eval/side_effects.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <fstream>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/eval/evaluate.h"
#include "lancet/text/prompt.h"
#include "support/core_support.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::config_error;
using testing::some_requests;
using testing::TempDir;
using testing::TinyModel;

class SideEffects : public ::testing::Test {
 protected:
  TinyModel tiny_;
  CausalLM model_ = tiny_.load();
  TempDir folder_;
  const std::vector<EditRequest> edited_ = some_requests(2);

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  std::filesystem::path probes(int64_t first, int64_t count) const {
    std::string lines;
    const std::vector<EditRequest> all = some_requests(first + count);
    for (int64_t i = first; i < first + count; ++i) lines += to_json_line(all[static_cast<size_t>(i)]) + "\n";
    return write("probes.jsonl", lines);
  }

  EvaluationPlan plan(SideEffectOptions side_effects) const {
    return {*tiny_.tokenizer,
            edited_,
            {.protocols = {}, .generated_tokens = 5, .side_effects = std::move(side_effects)},
            tiny_.config.max_positions};
  }

  /// log p [T, V] after each place of a row.
  static Tensor log_p(const CausalLM& model, const std::vector<TokenId>& ids) {
    const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{ids});
    const Tensor h_BTD =
        model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers());
    return model.logits(h_BTD[0]).log_softmax(1);
  }

  /// The model with another last down projection.
  CausalLM changed_model() const {
    const torch::NoGradGuard no_grad;
    CausalLM model = tiny_.load();
    Tensor weight = model.weight({WeightKind::kDown, 3});
    torch::manual_seed(5);
    weight.add_(0.3 * torch::randn_like(weight));
    return model;
  }

  std::optional<double> mean(const SideEffectReport& report, const std::string& name) const {
    return report.totals.at(name).mean();
  }
};

TEST_F(SideEffects, TextIsMeasuredAsTokenByToken) {
  const std::vector<std::string> texts{"The mother tongue of Leon Blum is French.", "A piano",
                                       "Rome was not built in a day, they say."};
  SideEffectOptions side_effects;
  side_effects.text = HeldOutOptions{write("text.txt", texts[0] + "\n" + texts[1] + "\n" + texts[2] + "\n"), 1000, 8};
  const EvaluationPlan questions = plan(side_effects);
  const Evaluation before = questions.run(model_, "test", alone());
  const CausalLM changed = changed_model();
  const SideEffectReport report = questions.run(changed, "test", alone(), &before).side_effects;

  double nll_before = 0, nll = 0, kl = 0, same = 0;
  int64_t n = 0;
  for (const std::string& text : texts) {
    std::vector<TokenId> ids = tiny_.tokenizer->ids(text);
    ids.resize(std::min<size_t>(ids.size(), 8));
    const Tensor old = log_p(model_, ids), now = log_p(changed, ids);
    for (size_t t = 0; t + 1 < ids.size(); ++t, ++n) {
      const auto place = static_cast<int64_t>(t);
      nll_before -= old[place][ids[t + 1]].item<double>();
      nll -= now[place][ids[t + 1]].item<double>();
      kl += (old[place].exp() * (old[place] - now[place])).sum().item<double>();
      same += old[place].argmax().item<int64_t>() == now[place].argmax().item<int64_t>() ? 1 : 0;
    }
  }
  const auto count = static_cast<double>(n);
  EXPECT_EQ(report.totals.at("text_nll").count, n);
  EXPECT_NEAR(*mean(before.side_effects, "text_nll"), nll_before / count, 1e-12);
  EXPECT_NEAR(*mean(report, "text_nll"), nll / count, 1e-12);
  EXPECT_NEAR(*mean(report, "text_perplexity"), std::exp(nll / count), 1e-9);
  EXPECT_GT(kl, 0);
  EXPECT_NEAR(*mean(report, "text_kl"), kl / count, 1e-12);
  EXPECT_NEAR(*mean(report, "text_top1_agreement"), same / count, 1e-12);
}

TEST_F(SideEffects, AreNotMeasuredBeyondTheModelsPositions) {
  const auto refused = [&](SideEffectOptions side_effects) {
    const EvaluationOptions options{.protocols = {}, .generated_tokens = 5, .side_effects = std::move(side_effects)};
    EXPECT_NO_THROW(EvaluationPlan(*tiny_.tokenizer, edited_, options, 100));
    return config_error([&] { EvaluationPlan(*tiny_.tokenizer, edited_, options, 30); });
  };
  std::string words;
  while (tiny_.tokenizer->ids(words).size() <= 30) words += words.empty() ? "word" : " word";
  SideEffectOptions text, probes, choices, answers;
  text.text = HeldOutOptions{write("text.txt", words + "\n")};
  EXPECT_EQ(refused(text).find("evaluate.side_effects.document_tokens: a document of 31 tokens, but the model has 30 "),
            0U);
  probes.probes =
      ProbeOptions{write("probes.jsonl", cat(R"({"id": "p7", "prompt": ")", words, R"(", "target": "a"})"))};
  EXPECT_NE(refused(probes).find("got evaluate.side_effects.probes: fact p7: 'word "), std::string::npos);
  choices.choices =
      write("choices.jsonl", cat(R"({"question": ")", words, R"(", "choices": ["a", "b"], "answer": 0})"));
  EXPECT_NE(refused(choices).find("got evaluate.side_effects.choices: question 0: 'word "), std::string::npos);
  answers.choices =
      write("answers.jsonl", cat(R"({"question": "q", "choices": ["a", ")", words, R"("], "answer": 0})"));
  EXPECT_NE(refused(answers).find("got evaluate.side_effects.choices: question 0: 'q' and 'word "), std::string::npos);
}

TEST_F(SideEffects, AreNoneOfAModelBesideItself) {
  SideEffectOptions side_effects;
  side_effects.text = HeldOutOptions{write("text.txt", "Rome was not built in a day.\n")};
  side_effects.probes = ProbeOptions{probes(6, 4)};
  const EvaluationPlan questions = plan(side_effects);
  const Evaluation before = questions.run(model_, "test", alone());
  EXPECT_FALSE(mean(before.side_effects, "text_kl"));  // of nothing
  const SideEffectReport report = questions.run(model_, "test", alone(), &before).side_effects;
  EXPECT_EQ(mean(report, "text_kl"), 0);
  EXPECT_EQ(mean(report, "text_top1_agreement"), 1);
  EXPECT_EQ(mean(report, "probe_logprob_change"), 0);
  EXPECT_EQ(mean(report, "probe_text_kept"), 1);
  EXPECT_EQ(report.totals.at("probe_argmax").count, 4);
}

TEST_F(SideEffects, ProbesTellOfLostFacts) {
  // facts that the model knows: what it says next, where that is a word of its own
  std::vector<EditRequest> facts;
  for (EditRequest& fact : load_request_file(probes(6, 60), {}).requests) {
    const std::vector<TokenId> ids = tiny_.tokenizer->ids(fact.prompt.text);
    const TokenId next = log_p(model_, ids)[-1].argmax().item<int64_t>();
    const std::string word = tiny_.tokenizer->decode(std::vector<TokenId>{next});
    if (tiny_.tokenizer->piece(next) == "▁" + word) fact.target_true = word;
    if (fact.target_true == word || facts.size() < 2) facts.push_back(std::move(fact));
  }
  std::string lines;
  for (const EditRequest& fact : facts) lines += to_json_line(fact) + "\n";
  SideEffectOptions side_effects;
  side_effects.probes = ProbeOptions{write("probes.jsonl", lines)};
  const EvaluationPlan questions = plan(side_effects);
  const Evaluation before = questions.run(model_, "test", alone());
  const CausalLM changed = changed_model();
  const SideEffectReport report = questions.run(changed, "test", alone(), &before).side_effects;
  double right_before = 0, right = 0, kept = 0, change_of_log_p = 0;
  for (const EditRequest& fact : facts) {
    const std::vector<TokenId> prompt = tiny_.tokenizer->ids(fact.prompt.text);
    const std::vector<TokenId> target =
        continue_prompt(*tiny_.tokenizer, fact.prompt.text, *fact.target_true, "test").target;
    std::vector<TokenId> ids = prompt;
    ids.insert(ids.end(), target.begin(), target.end());
    const Tensor old = log_p(model_, ids), now = log_p(changed, ids);
    bool was_right = true, is_right = true;
    for (size_t j = 0; j < target.size(); ++j) {
      const auto place = static_cast<int64_t>(prompt.size() + j) - 1;
      was_right = was_right && old[place].argmax().item<int64_t>() == target[j];
      is_right = is_right && now[place].argmax().item<int64_t>() == target[j];
      change_of_log_p +=
          (now[place][target[j]] - old[place][target[j]]).item<double>() / static_cast<double>(target.size());
    }
    right_before += was_right ? 1 : 0;
    right += is_right ? 1 : 0;
    kept += was_right && is_right ? 1 : 0;
  }
  const auto n = static_cast<double>(facts.size());
  EXPECT_NEAR(*mean(before.side_effects, "probe_argmax"), right_before / n, 1e-12);
  EXPECT_NEAR(*mean(report, "probe_argmax"), right / n, 1e-12);
  EXPECT_NEAR(*mean(report, "probe_logprob_change"), change_of_log_p / n, 1e-12);
  ASSERT_GT(right_before, 0);
  ASSERT_LT(right, right_before);
  EXPECT_NEAR(*mean(report, "probe_kept"), kept / right_before, 1e-12);
}

TEST_F(SideEffects, RefuseProbesThatAreEdited) {
  SideEffectOptions side_effects;
  side_effects.probes = ProbeOptions{probes(0, 4)};
  try {
    plan(side_effects);
    FAIL() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("2 of them are edited by this job"), std::string::npos) << error.what();
  }
}

TEST_F(SideEffects, ChoicesGoByTheLikeliest) {
  const std::string question = "Leon Blum was born in";
  std::vector<double> nll;
  const std::vector<std::string> choices{"Rome", "the city of London", "a piano"};
  for (const std::string& choice : choices) {
    const std::vector<TokenId> prompt = tiny_.tokenizer->ids(question);
    const std::vector<TokenId> target = continue_prompt(*tiny_.tokenizer, question, choice, "test").target;
    std::vector<TokenId> ids = prompt;
    ids.insert(ids.end(), target.begin(), target.end());
    const Tensor p = log_p(model_, ids);
    double sum = 0;
    for (size_t j = 0; j < target.size(); ++j)
      sum -= p[static_cast<int64_t>(prompt.size() + j) - 1][target[j]].item<double>();
    nll.push_back(sum / static_cast<double>(target.size()));
  }
  const size_t best = static_cast<size_t>(std::min_element(nll.begin(), nll.end()) - nll.begin());
  const std::string list = R"("choices": ["Rome", "the city of London", "a piano"], )";
  SideEffectOptions side_effects;
  side_effects.choices =
      write("choices.jsonl", "{\"question\": \"" + question + "\", " + list + "\"answer\": " + std::to_string(best) +
                                 "}\n\n{\"question\": \"" + question + "\", " + list + "\"answer\": \"" +
                                 choices[(best + 1) % 3] + "\"}\n");
  const SideEffectReport report = plan(side_effects).run(model_, "test", alone()).side_effects;
  EXPECT_EQ(mean(report, "choice_accuracy"), 0.5);
  EXPECT_EQ(mean(report, "choice_invalid"), 1);  // it writes none of them
  EXPECT_EQ(mean(report, "choice_generated_accuracy"), 0);
}

TEST_F(SideEffects, NameEveryBadQuestion) {
  const std::filesystem::path path = write("bad.jsonl",
                                           "{\"question\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": 0}\n"
                                           "nothing\n"
                                           "{\"question\": \"a\", \"choices\": [\"b\"], \"answer\": 0}\n"
                                           "{\"question\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": 2}\n"
                                           "{\"choices\": [\"b\", \"c\"], \"answer\": 1}\n");
  try {
    load_choices(path);
    FAIL() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    for (const char* part :
         {"line 2: not valid JSON", "line 3: choices: expected a list of at least two texts",
          "line 4: answer: expected one of the choices, or its index from 0 to 1", "line 5: question: expected text"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace lancet
