// Writes audit.json.
#include "audit_prompts.h"
#include "lancet/core/version.h"
#include "lancet/erasure/erase_job.h"
#include "lancet/outcome/report_json.h"
#include "neutral_target.h"

namespace lancet {
namespace {

constexpr const char* kProtocol =
    "said: every token of the old answer is the likeliest one after the prompt. sampled: the old answer stands, as "
    "whole words, in an answer drawn after the request's own prompt. lens: a layer's hidden state at the prompt's last "
    "token through the final norm and the head, for the old answer's first token. relearning: training of the down "
    "projections of all layers, on facts of the same relations that were not erased, from the erased weights; "
    "returned: facts said after their own prompt that the erased model did not say there";

Json share_json(int64_t count, int64_t of) {
  return of > 0 ? Json(static_cast<double>(count) / static_cast<double>(of)) : Json(nullptr);
}

Json row_json(const AuditRow& row) {
  const bool has_probability = row.name != "sampled" && row.name != "anywhere";
  Json json = {
      {"asked", row.asked}, {"before", share_json(row.before, row.asked)}, {"after", share_json(row.after, row.asked)}};
  if (has_probability) json["probability"] = {{"before", row.probability_before}, {"after", row.probability_after}};
  return json;
}

Json lens_json(std::span<const FactAudit> facts) {
  const LensSummary lens = summarize_lens(facts);
  return {{"probability", lens.probability}, {"first", lens.first}};
}

Json relearned_json(const Audit& audit) {
  Json list = Json::array();
  for (const Relearned& result : audit.relearned)
    list.push_back({{"facts", result.facts},
                    {"prompt", share_json(result.prompt, result.prompts)},
                    {"paraphrase", share_json(result.paraphrase, result.paraphrases)},
                    {"returned", result.returned}});
  return list;
}

Json said_json(const ErasedFact& fact, const FactAudit& audit) {
  Json asked = Json::array();
  for (size_t p = 0; p < audit.asked.size(); ++p)
    asked.push_back({{"kind", audit_kind_name(fact.prompts[p].kind)},
                     {"prompt", fact.prompts[p].text},
                     {"said", audit.asked[p].said},
                     {"probability", audit.asked[p].probability}});
  return {{"asked", std::move(asked)},
          {"sampled", audit.sampled},
          {"sample", audit.samples > 0 ? Json(audit.sample) : Json(nullptr)},
          {"lens", {{"probability", audit.lens_probability}, {"rank", audit.lens_rank}}}};
}

Json fact_json(const Audit& audit, size_t i) {
  const ErasedFact& fact = audit.facts[i];
  return {{"id", fact.request.id},
          {"prompt", fact.request.prompt.text},
          {"subject", fact.request.subject},
          {"old_answer", fact.old_answer},
          {"old_answer_by", said_by_name(fact.answer_by)},
          {"target", fact.request.target},
          {"target_by", said_by_name(fact.target_by)},
          {"before", said_json(fact, audit.before[i])},
          {"after", said_json(fact, audit.after[i])}};
}

}  // namespace

std::string to_json(const EraseReport& report, const JobConfig& job) {
  const Audit& audit = report.audit;
  const EraseOptions& options = *job.erase;
  Json said = Json::object(), facts = Json::array(), openings = Json::array();
  for (const AuditRow& row : summarize(audit)) said[row.name] = row_json(row);
  for (size_t i = 0; i < audit.facts.size(); ++i) facts.push_back(fact_json(audit, i));
  for (const std::string_view opening : audit_openings()) openings.push_back(opening);
  const EditReport& edit = report.edit;
  return dump_report(
      {{"format", "lancet-audit-1"},
       {"lancet", kVersion},
       {"caution", kAuditCaution},
       {"protocol", kProtocol},
       {"model", {{"folder", job.model.string()}, {"content_hash", edit.base_hash}, {"run_dtype", edit.model_dtype}}},
       {"output",
        {{"folder", job.output->place.folder.string()},
         {"format", edit.output_format},
         {"holds", "the merged model alone: no journal, no requests, no report"}}},
       {"method", job.method},
       {"options",
        {{"prompts", options.prompts},
         {"made_up_subjects", made_up_subjects(job.run.seed, kMadeUpSubjects)},
         {"openings", std::move(openings)},
         {"samples", options.samples},
         {"temperature", options.temperature},
         {"tokens", options.tokens},
         {"seed", job.run.seed}}},
       {"erased", audit.facts.size()},
       {"said", std::move(said)},
       {"lens", {{"before", lens_json(audit.before)}, {"after", lens_json(audit.after)}}},
       {"relearning", options.relearn ? Json{{"related", audit.related},
                                             {"steps", options.relearn->steps},
                                             {"lr", options.relearn->lr},
                                             {"curve", relearned_json(audit)}}
                                      : Json(nullptr)},
       {"unrelated",
        {{"metrics", figures_json(edit.after.metrics, {edit.before.totals, edit.before.requests},
                                  {edit.after.totals, edit.after.requests}, "prompts")},
         {"side_effects", side_effects_json(edit.before.side_effects, edit.after.side_effects)}}},
       {"facts", std::move(facts)}});
}

}  // namespace lancet
