#include "asked_prompts.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/text_metrics/answer_match.h"

namespace lancet {
namespace {

constexpr int64_t kFewTokens = 8;        ///< tokens of an answer that should stay as it was
constexpr int64_t kLongestAnswer = 256;  ///< largest number of tokens

/// Estimates how many tokens the text has at most in a usual vocabulary: one for each byte that is not ASCII, and one
/// for two letters otherwise.
int64_t tokens_for(const std::string& text) {
  const auto plain =
      std::count_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  const auto other = static_cast<int64_t>(text.size()) - plain;
  return std::min(kLongestAnswer, kFewTokens + plain / 2 + other);
}

/// Whether the text begins with the target, as whole words, after normalized_answer().
bool says(const std::string& text, const std::string& target) {
  const std::string said = normalized_answer(text), wanted = normalized_answer(target);
  return said == wanted || (!wanted.empty() && said.starts_with(wanted + " "));
}

struct PromptKind {
  const char* metric;
  std::vector<std::string> (*prompts)(const EditRequest& request);
};

const PromptKind kKinds[] = {
    {kPushMetrics[0], [](const EditRequest& request) { return std::vector{request.prompt.text}; }},
    {kPushMetrics[1], [](const EditRequest& request) { return request.paraphrases; }},
    {kPushMetrics[2], [](const EditRequest& request) { return request.neighborhood; }}};

std::vector<const EditRequest*> latest_first(const Journal& journal) {
  const ReplacedEdits replaced = replaced_edits(journal);
  std::vector<const EditRequest*> edits;
  for (const BatchEntry& batch : journal.batches())
    for (const EditRecord& edit : batch.edits)
      if (!replaced.contains(edit.request.id)) edits.push_back(&edit.request);
  std::reverse(edits.begin(), edits.end());
  return edits;
}

}  // namespace

bool AskedPrompt::held_before() const { return target.empty() || says(before, target); }
bool AskedPrompt::holds() const {
  return target.empty() ? normalized_answer(after) == normalized_answer(before) : says(after, target);
}

std::vector<AskedPrompt> prompts_to_ask(const Journal& journal, int64_t most) {
  const std::vector<const EditRequest*> edits = latest_first(journal);
  std::vector<AskedPrompt> asked;
  for (const PromptKind& kind : kKinds) {
    int64_t taken = 0;
    bool is_more = true;
    for (size_t round = 0; is_more && taken < most; ++round) {
      is_more = false;
      for (const EditRequest* edit : edits) {
        const std::vector<std::string> prompts = kind.prompts(*edit);
        if (round >= prompts.size() || taken == most) continue;
        is_more = true;
        ++taken;
        asked.push_back({.metric = kind.metric,
                         .request = edit->id,
                         .prompt = prompts[round],
                         .target = kind.metric == kPushMetrics[2] ? std::string() : edit->target});
      }
    }
  }
  return asked;
}

std::vector<std::string> ask_prompts(InferenceServer& server, const std::vector<AskedPrompt>& prompts,
                                     const AskedAdapter& adapter, const std::string& stage) {
  std::vector<std::string> answers;
  Progress progress(stage, static_cast<int64_t>(prompts.size()), "prompts");
  for (const AskedPrompt& each : prompts) {
    answers.push_back(server.complete({.adapter = adapter.name,
                                       .without = adapter.without,
                                       .text = each.prompt,
                                       .max_tokens = each.target.empty() ? kFewTokens : tokens_for(each.target)}));
    progress.advance();
  }
  return answers;
}

PushShares push_shares(const std::vector<AskedPrompt>& asked, const std::string& metric) {
  PushShares shares;
  double before = 0, after = 0;
  bool has_targets = false;
  for (const AskedPrompt& each : asked) {
    if (each.metric != metric) continue;
    ++shares.count;
    has_targets = !each.target.empty();
    before += each.held_before() ? 1 : 0;
    after += each.holds() ? 1 : 0;
  }
  if (shares.count == 0) return shares;
  if (has_targets) shares.before = before / static_cast<double>(shares.count);
  shares.after = after / static_cast<double>(shares.count);
  return shares;
}

bool is_push_metric(std::string_view name) {
  return std::find(std::begin(kPushMetrics), std::end(kPushMetrics), name) != std::end(kPushMetrics);
}

void add_push_threshold(PushJob& job, const std::string& metric, double share) {
  if (!is_push_metric(metric))
    throw ConfigError(cat("accept: ", metric, ": expected efficacy, paraphrase or specificity"));
  if (!(share >= 0 && share <= 1))
    throw ConfigError(cat("accept: ", metric, ": expected a share from 0 to 1, got ", share));
  job.accept.emplace_back(metric, share);
}

std::vector<std::string> unmet_push_thresholds(const PushJob& job, const std::vector<AskedPrompt>& asked) {
  std::vector<std::string> unmet;
  for (const auto& [metric, least] : job.accept) {
    const PushShares shares = push_shares(asked, metric);
    if (!shares.after)
      unmet.push_back(cat(metric, ": n/a for these edits, expected at least ", 100 * least, " %"));
    else if (*shares.after < least)
      unmet.push_back(cat(metric, ": ", shortfall_text(*shares.after, least)));
  }
  return unmet;
}

}  // namespace lancet
