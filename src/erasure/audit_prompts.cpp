#include "audit_prompts.h"

#include <algorithm>
#include <set>

#include "lancet/core/strings.h"
#include "lancet/text/prompt.h"

namespace lancet {
namespace {

constexpr std::string_view kOpenings[] = {"It is widely reported that {}", "As everybody here remembers: {}",
                                          "Yesterday's newspaper said this. {}"};

/// Returns the next fact with a different old answer; null if there is none.
const ErasedFact* other_fact(std::span<const ErasedFact> facts, size_t at) {
  for (size_t step = 1; step < facts.size(); ++step) {
    const ErasedFact& other = facts[(at + step) % facts.size()];
    if (other.old_answer != facts[at].old_answer) return &other;
  }
  return nullptr;
}

std::vector<AuditPrompt> prompts_of(std::span<const ErasedFact> facts, size_t at) {
  const EditRequest& request = facts[at].request;
  const std::string& own = request.prompt.text;
  std::vector<AuditPrompt> prompts{{AuditKind::kPrompt, own}};
  for (const std::string& paraphrase : request.paraphrases) prompts.push_back({AuditKind::kParaphrase, paraphrase});
  for (const std::string_view opening : kOpenings)
    prompts.push_back({AuditKind::kOpening, place_in_context(opening, request.prompt).text});
  if (const ErasedFact* other = other_fact(facts, at)) {
    const std::string said = cat(other->request.prompt.text, " ", other->old_answer);
    prompts.push_back({AuditKind::kOrder, cat(said, ". ", own)});
    prompts.push_back({AuditKind::kOrder, cat("1. ", said, "\n2. ", own)});
  }
  prompts.push_back({AuditKind::kOrder, cat("Question: ", own, "? Answer:")});
  return prompts;
}

}  // namespace

std::span<const std::string_view> audit_openings() { return kOpenings; }

void add_audit_prompts(std::vector<ErasedFact>& facts, const Tokenizer& tokenizer, int64_t max_positions) {
  for (size_t i = 0; i < facts.size(); ++i) {
    std::set<std::string> seen;
    const auto room = max_positions - static_cast<int64_t>(tokenizer.ids(facts[i].old_answer).size());
    std::vector<AuditPrompt> prompts = prompts_of(facts, i);
    std::erase_if(prompts, [&](const AuditPrompt& prompt) {
      return !seen.insert(prompt.text).second || static_cast<int64_t>(tokenizer.ids(prompt.text).size()) > room;
    });
    facts[i].prompts = std::move(prompts);
  }
}

}  // namespace lancet
