// What a model says about facts to erase: before the erasure, after it, and after training on related facts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lancet/requests/request.h"

namespace lancet {

/// The ways in which the audit asks. Only the first one is edited.
enum class AuditKind {
  kPrompt,      ///< the request's own prompt
  kParaphrase,  ///< the request's paraphrases
  kOpening,     ///< the request's own prompt after other prefixes
  kOrder        ///< the request's own prompt after another fact, within a list, as a question
};
inline constexpr AuditKind kAuditKinds[] = {AuditKind::kPrompt, AuditKind::kParaphrase, AuditKind::kOpening,
                                            AuditKind::kOrder};
/// Returns "prompt", "paraphrase", "opening", "order".
std::string audit_kind_name(AuditKind kind);

struct AuditPrompt {
  AuditKind kind = AuditKind::kPrompt;
  std::string text;
};

/// Where a text comes from.
enum class SaidBy { kRequest, kJob, kModel };
/// Returns "request", "job", "model".
std::string said_by_name(SaidBy who);

struct ErasedFact {
  EditRequest request;          ///< its target is what the model should say instead
  std::string old_answer = {};  ///< what the model should no longer say
  SaidBy answer_by = SaidBy::kRequest;
  SaidBy target_by = SaidBy::kRequest;
  std::vector<AuditPrompt> prompts = {};  ///< the prompts that ask for it, its own prompt first
};

/// The model's answer to one of the prompts.
struct PromptAudit {
  bool said = false;       ///< whether each token of the old answer is the most likely one
  double probability = 0;  ///< probability of the whole old answer
};

/// The model's answers about one fact.
struct FactAudit {
  std::vector<PromptAudit> asked = {};        ///< answers to the fact's prompts
  int64_t samples = 0;                        ///< number of answers sampled after the own prompt
  int64_t sampled = 0;                        ///< how many of these contain the old answer
  std::string sample = {};                    ///< the first of these
  std::vector<double> lens_probability = {};  ///< probability of the old answer's first token, by layer
  std::vector<int64_t> lens_rank = {};        ///< rank of that token, by layer; 1: no token is more likely
};

/// The old answers that training on related facts brought back.
struct Relearned {
  int64_t facts = 0;                ///< related facts that were trained on; 0: none, which is the erased model itself
  int64_t prompt = 0, prompts = 0;  ///< own prompts after which the old answer is said, and the number of own prompts
  int64_t paraphrase = 0, paraphrases = 0;  ///< the same for paraphrases
  int64_t returned = 0;  ///< facts that are said after the own prompt, but were not said there by the erased model
};

struct Audit {
  std::vector<ErasedFact> facts = {};
  std::vector<FactAudit> before = {}, after = {};  ///< one per fact
  std::vector<Relearned> relearned = {};           ///< ascending by the number of facts; empty: not measured
  int64_t related = 0;                             ///< number of related facts that were available for training
};

/// How often the old answers are said, for one way of asking.
struct AuditRow {
  std::string name;  ///< an AuditKind, "sampled", or "anywhere": facts that any of these rows finds
  int64_t before = 0, after = 0;
  int64_t asked = 0;                                     ///< number of prompts, samples or facts
  double probability_before = 0, probability_after = 0;  ///< means; 0 for rows without probabilities
};
std::vector<AuditRow> summarize(const Audit& audit);

/// Means over facts, by layer.
struct LensSummary {
  std::vector<double> probability = {};
  std::vector<double> first = {};  ///< share of facts whose token has rank 1
};
LensSummary summarize_lens(std::span<const FactAudit> facts);

}  // namespace lancet
