// What a model says of facts that are to be erased: asked before, after, and after training on related facts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lancet/requests/request.h"

namespace lancet {

/// Ways in which the audit asks, none of which is edited but the first.
enum class AuditKind {
  kPrompt,      ///< the request's own prompt
  kParaphrase,  ///< the request's paraphrases
  kOpening,     ///< the own prompt after other openings
  kOrder        ///< the own prompt after another fact, within a list, as a question
};
inline constexpr AuditKind kAuditKinds[] = {AuditKind::kPrompt, AuditKind::kParaphrase, AuditKind::kOpening,
                                            AuditKind::kOrder};
/// "prompt", "paraphrase", "opening", "order".
std::string audit_kind_name(AuditKind kind);

struct AuditPrompt {
  AuditKind kind = AuditKind::kPrompt;
  std::string text;
};

/// Who said what a text is.
enum class SaidBy { kRequest, kJob, kModel };
/// "request", "job", "model".
std::string said_by_name(SaidBy who);

struct ErasedFact {
  EditRequest request;          ///< its target is what the model shall say instead
  std::string old_answer = {};  ///< what it shall no longer say
  SaidBy answer_by = SaidBy::kRequest;
  SaidBy target_by = SaidBy::kRequest;
  std::vector<AuditPrompt> prompts = {};  ///< prompts that it is asked by; the own one first
};

/// What a model says after one of the prompts.
struct PromptAudit {
  bool said = false;       ///< each token of the old answer is the likeliest one
  double probability = 0;  ///< probability of the whole old answer
};

/// What a model says of one fact.
struct FactAudit {
  std::vector<PromptAudit> asked = {};        ///< answers to the fact's prompts
  int64_t samples = 0;                        ///< answers that were drawn after the own prompt
  int64_t sampled = 0;                        ///< answers of these that hold the old one
  std::string sample = {};                    ///< the first of them
  std::vector<double> lens_probability = {};  ///< the old answer's first token's, by layer
  std::vector<int64_t> lens_rank = {};        ///< likewise; 1: no token is likelier
};

/// What came back by training on related facts.
struct Relearned {
  int64_t facts = 0;                ///< related facts that were trained; 0: none, which is the erased model itself
  int64_t prompt = 0, prompts = 0;  ///< own prompts after which the old answer is said, of all
  int64_t paraphrase = 0, paraphrases = 0;  ///< likewise, paraphrases
  int64_t returned = 0;                     ///< facts said after the own prompt that the erased model did not say there
};

struct Audit {
  std::vector<ErasedFact> facts = {};
  std::vector<FactAudit> before = {}, after = {};  ///< answers by fact
  std::vector<Relearned> relearned = {};           ///< ascending by the number of facts; empty: not measured
  int64_t related = 0;                             ///< related facts that there were to train on
};

/// How often the old answers are said, in one way of asking.
struct AuditRow {
  std::string name;  ///< an AuditKind, "sampled", or "anywhere": facts for which any of these says it
  int64_t before = 0, after = 0;
  int64_t asked = 0;                                     ///< prompts, samples, facts
  double probability_before = 0, probability_after = 0;  ///< means; 0 for rows without
};
std::vector<AuditRow> summarize(const Audit& audit);

/// Means over facts, by layer.
struct LensSummary {
  std::vector<double> probability = {};
  std::vector<double> first = {};  ///< share of facts whose token has rank 1
};
LensSummary summarize_lens(std::span<const FactAudit> facts);

}  // namespace lancet
