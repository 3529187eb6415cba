#include "lancet/erasure/audit.h"

#include <algorithm>

namespace lancet {
namespace {

bool says_anywhere(const FactAudit& fact) {
  return fact.sampled > 0 || std::ranges::any_of(fact.asked, [](const PromptAudit& asked) { return asked.said; });
}

AuditRow row_of(const Audit& audit, AuditKind kind) {
  AuditRow row{.name = audit_kind_name(kind)};
  for (size_t f = 0; f < audit.facts.size(); ++f)
    for (size_t p = 0; p < audit.facts[f].prompts.size(); ++p) {
      if (audit.facts[f].prompts[p].kind != kind) continue;
      const PromptAudit &before = audit.before[f].asked[p], &after = audit.after[f].asked[p];
      ++row.asked;
      row.before += before.said;
      row.after += after.said;
      row.probability_before += before.probability;
      row.probability_after += after.probability;
    }
  if (row.asked > 0) {
    row.probability_before /= static_cast<double>(row.asked);
    row.probability_after /= static_cast<double>(row.asked);
  }
  return row;
}

}  // namespace

std::string audit_kind_name(AuditKind kind) {
  constexpr const char* kNames[] = {"prompt", "paraphrase", "opening", "order"};
  return kNames[static_cast<size_t>(kind)];
}

std::string said_by_name(SaidBy who) {
  constexpr const char* kNames[] = {"request", "job", "model"};
  return kNames[static_cast<size_t>(who)];
}

std::vector<AuditRow> summarize(const Audit& audit) {
  std::vector<AuditRow> rows;
  for (const AuditKind kind : kAuditKinds)
    if (AuditRow row = row_of(audit, kind); row.asked > 0) rows.push_back(std::move(row));
  AuditRow sampled{.name = "sampled"}, anywhere{.name = "anywhere"};
  for (size_t f = 0; f < audit.facts.size(); ++f) {
    sampled.asked += audit.before[f].samples;
    sampled.before += audit.before[f].sampled;
    sampled.after += audit.after[f].sampled;
    ++anywhere.asked;
    anywhere.before += says_anywhere(audit.before[f]);
    anywhere.after += says_anywhere(audit.after[f]);
  }
  if (sampled.asked > 0) rows.push_back(std::move(sampled));
  rows.push_back(std::move(anywhere));
  return rows;
}

LensSummary summarize_lens(std::span<const FactAudit> facts) {
  LensSummary lens;
  const size_t n_layers = facts.empty() ? 0 : facts.front().lens_rank.size();
  const auto n_facts = static_cast<double>(facts.size());
  for (size_t layer = 0; layer < n_layers; ++layer) {
    double probability = 0, first = 0;
    for (const FactAudit& fact : facts) {
      probability += fact.lens_probability[layer] / n_facts;
      first += (fact.lens_rank[layer] == 1 ? 1 : 0) / n_facts;
    }
    lens.probability.push_back(probability);
    lens.first.push_back(first);
  }
  return lens;
}

}  // namespace lancet
