// `lancet eval --server`: another program's server answers the questions of an evaluation.
#include "lancet/push/server_eval.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/eval/evaluate.h"
#include "lancet/eval/protocol.h"
#include "lancet/models/model_files.h"
#include "lancet/pipeline/earlier_output.h"
#include "lancet/pipeline/edit_job.h"

namespace lancet {
namespace {

/// What a model's folder has, without its weights.
struct ReadModel {
  std::unique_ptr<Tokenizer> tokenizer;
  int64_t max_positions = 0;
};

ReadModel read_model(const JobConfig& job) {
  const DescribedModel described = describe_model(job.model, job.ignore_config_keys);
  return {open_tokenizer(described.folder), described.config.max_positions};
}

EvaluationOptions with_protocols(const EvaluationOptions& options, std::vector<std::string> protocols) {
  EvaluationOptions some = options;
  some.protocols = std::move(protocols);
  some.side_effects = {};
  return some;
}

class ServerMeasure {
 public:
  ServerMeasure(InferenceServer& server, std::string adapter) : server_(server), adapter_(std::move(adapter)) {}

  TargetAnswer score(const Continuation& asked) {
    std::vector<TokenId> ids = asked.prompt;
    ids.insert(ids.end(), asked.target.begin(), asked.target.end());
    const TokenScores scores = server_.score({.adapter = adapter_, .ids = std::move(ids)}, asked.target.size());
    TargetAnswer answer;
    for (size_t i = 0; i < asked.target.size(); ++i) {
      answer.nll -= scores.log_probabilities[i] / static_cast<double>(asked.target.size());
      answer.argmax.push_back(scores.is_likeliest[i] ? asked.target[i] : kAnotherToken);
      answer.n_right += scores.is_likeliest[i] ? 1 : 0;
    }
    return answer;
  }

  GeneratedText continue_text(const TextQuestion& asked, const Tokenizer& tokenizer) {
    GeneratedText text;
    text.continuation = server_.complete(
        {.adapter = adapter_, .ids = asked.prompt, .max_tokens = asked.max_new_tokens, .end_ids = asked.end_ids});
    text.whole = tokenizer.decode(asked.prompt) + text.continuation;
    if (text.continuation.starts_with(' ')) text.continuation.erase(0, 1);
    return text;
  }

  /// Returns why the server gives no log-probabilities of prompts; empty if it gives them.
  std::string why_no_scores(const Continuation& asked) {
    try {
      score(asked);
      return {};
    } catch (const ServerRefusal& refusal) {
      return refusal.what();
    }
  }

  ModelAnswers answer(const ModelQuestions& questions, const Tokenizer& tokenizer) {
    const size_t total = questions.continuations().size() + questions.texts().size();
    Progress progress("ask server", static_cast<int64_t>(total), "questions");
    ModelAnswers answers;
    for (const Continuation& asked : questions.continuations()) {
      answers.scores.emplace_back(score(asked));
      progress.advance();
    }
    for (const TextQuestion& asked : questions.texts()) {
      answers.texts.push_back(asked.decoding == Decoding::kGreedy ? std::optional(continue_text(asked, tokenizer))
                                                                  : std::nullopt);
      progress.advance();
    }
    return answers;
  }

 private:
  static constexpr TokenId kAnotherToken = -1;  ///< servers name the likeliest token only by its text

  InferenceServer& server_;
  std::string adapter_;
};

bool samples(const ModelQuestions& questions) {
  return std::any_of(questions.texts().begin(), questions.texts().end(),
                     [](const TextQuestion& text) { return text.decoding != Decoding::kGreedy; });
}

/// Returns the protocols that can be measured on the server. The reasons against others go to `not_measured`.
std::vector<std::string> measurable(const JobConfig& job, const ReadModel& model,
                                    const std::vector<EditRequest>& requests, ServerMeasure& measure,
                                    MeasuredServer& told) {
  std::vector<std::string> protocols;
  std::optional<std::string> why_no_scores;
  for (const std::string& name : job.evaluation.protocols) {
    if (without_comparing({name}).empty()) {
      told.not_measured.emplace_back(name, "it compares with an unedited model, and a server has one model");
      continue;
    }
    const EvaluationPlan alone(*model.tokenizer, requests, with_protocols(job.evaluation, {name}), model.max_positions);
    const ModelQuestions& questions = alone.questions();
    if (!questions.continuations().empty() && !why_no_scores)
      why_no_scores = measure.why_no_scores(questions.continuations().front());
    if (!questions.continuations().empty() && !why_no_scores->empty()) {
      told.not_measured.emplace_back(name, *why_no_scores);
      continue;
    }
    if (samples(questions))
      told.not_measured.emplace_back(name + " of long texts", "they are sampled by lancet's own random numbers");
    protocols.push_back(name);
  }
  if (!job.evaluation.side_effects.empty())
    told.not_measured.emplace_back("side_effects", "they are measured on a model in memory alone");
  return protocols;
}

}  // namespace

EvalReport run_server_eval_job(const JobConfig& job, const ServerToMeasure& server) {
  const ReadModel model = read_model(job);
  RequestFile file = load_requests(job.requests);
  warn_of_skipped(file.skipped);
  warn_of_texts(file.requests);
  if (job.evaluation.target_end != JudgedEnd::kNone)
    throw ConfigError(
        "evaluate.target_end: a server does not tell whether an end token or the limit ended its text: "
        "expected none");
  EvalReport report;
  report.requests = std::move(file.requests);
  report.skipped = std::move(file.skipped);
  const FoundServer found = find_server(server.access, server.kind);
  const ServerFacts facts = found.server->facts();
  MeasuredServer told{.address = server.access.address.text(),
                      .kind = found.kind,
                      .version = facts.version,
                      .model = facts.model,
                      .adapter = server.adapter};
  ServerMeasure measure(*found.server, server.adapter);
  const std::vector<std::string> protocols = measurable(job, model, report.requests, measure, told);
  if (protocols.empty())
    throw ConfigError(
        cat(told.address, ": none of `evaluate:` can be measured there: ",
            told.not_measured.empty() ? std::string("expected metrics, got none") : told.not_measured.front().second,
            "; generation can"));
  const EvaluationPlan plan(*model.tokenizer, report.requests, with_protocols(job.evaluation, protocols),
                            model.max_positions);
  report.evaluation = plan.judge(measure.answer(plan.questions(), *model.tokenizer));
  report.server = std::move(told);
  return report;
}

}  // namespace lancet
