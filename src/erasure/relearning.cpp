#include "relearning.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/requests/same_fact.h"
#include "measure.h"

namespace lancet {
namespace {

/// Returns what a fact shares with related facts.
std::string relation_of(const EditRequest& request) {
  return request.relation.empty() ? marked_prompt(request.prompt) : request.relation;
}

/// Returns the related facts with their true answers as targets. They take turns: one fact of each relation of the
/// erased facts.
std::vector<EditRequest> by_relation(std::vector<EditRequest> related, std::span<const EditRequest> erased) {
  std::vector<std::string> relations;
  for (const EditRequest& request : erased)
    if (const std::string relation = relation_of(request); std::ranges::find(relations, relation) == relations.end())
      relations.push_back(relation);
  std::map<std::string, std::vector<EditRequest>> found;
  for (EditRequest& request : related) {
    const auto is_of_erased = [&](const EditRequest& other) { return other.subject == request.subject; };
    if (!request.target_true || std::ranges::any_of(erased, is_of_erased)) continue;
    request.target = *request.target_true;
    found[relation_of(request)].push_back(std::move(request));
  }
  std::vector<EditRequest> in_turn;
  bool has_more = true;
  for (size_t round = 0; has_more; ++round) {
    has_more = false;
    for (const std::string& relation : relations)
      if (auto& facts = found[relation]; round < facts.size()) {
        in_turn.push_back(std::move(facts[round]));
        has_more = true;
      }
  }
  return in_turn;
}

ConfigTree training_editor(const EraseOptions::Relearning& options, const ModelConfig& config) {
  std::vector<ConfigTree> layers;
  for (const int64_t layer : config.layers_with_mlp()) layers.push_back(ConfigTree::number(layer));
  ConfigTree modules = ConfigTree::map(), editor = ConfigTree::map();
  modules.set("down", ConfigTree::list(std::move(layers)));
  editor.set("method", ConfigTree::text(std::string(RelearnSpec::kMethod)));
  editor.set("modules", std::move(modules));
  editor.set("steps", ConfigTree::number(options.steps));
  editor.set("lr", ConfigTree::number(options.lr));
  editor.set("stop_loss", ConfigTree::number(0.0));  // facts that the model already knows are trained, too
  return editor;
}

}  // namespace

Relearning::Relearning(const JobConfig& job, const ModelFiles& files, std::vector<EditRequest> related,
                       std::span<const EditRequest> erased)
    : files_(files), counts_(job.erase->relearn->counts), related_(by_relation(std::move(related), erased)) {
  if (related_.empty())
    throw ConfigError(
        "erase.relearn.requests: none has a target_true and the relation of an erased fact: expected facts of the same "
        "relations about other subjects");
  check_lengths(files, related_);
  JobConfig training;
  training.model = job.model;
  training.run = job.run;
  training_ = with_editor(std::move(training), training_editor(*job.erase->relearn, files.config), "erase.relearn");
  check_requests(files, related_, *training_.editor);
}

Workload Relearning::work() const {
  std::vector<std::string> assumptions;  // none remain, because the tokenizer is there
  return edit_work(training_, files_.config, {.tokenizer = files_.tokenizer.get(), .requests = related_}, assumptions);
}

std::vector<std::vector<PromptAudit>> Relearning::asked_after(CausalLM& model, std::span<const ErasedFact> facts,
                                                              int64_t count) const {
  WeightTransaction transaction(model);  // restores the weights at the end
  const Editor& editor = *training_.editor;
  const EditContext context(model, *files_.tokenizer, {}, {},
                            {alone(), nullptr, training_.run.step_launch, training_.run.seed});
  EditorState state = editor.make_state();
  editor.edit(context, std::span(related_).first(static_cast<size_t>(count)), state, transaction);
  editor.finish(context, transaction);
  return ask_prompts(model, *files_.tokenizer, facts, cat("after ", counted(static_cast<size_t>(count), "fact")));
}

std::vector<Relearned> Relearning::run(CausalLM& model, std::span<const ErasedFact> facts,
                                       std::span<const FactAudit> erased) const {
  std::vector<std::vector<PromptAudit>> first;
  for (const FactAudit& fact : erased) first.push_back(fact.asked);
  const auto counted_up = [&](int64_t count, const std::vector<std::vector<PromptAudit>>& asked) {
    Relearned result{.facts = count};
    for (size_t f = 0; f < facts.size(); ++f) {
      for (size_t p = 0; p < facts[f].prompts.size(); ++p) {
        const AuditKind kind = facts[f].prompts[p].kind;
        if (kind == AuditKind::kPrompt) {
          ++result.prompts;
          result.prompt += asked[f][p].said;
          result.returned += asked[f][p].said && !first[f][p].said;
        } else if (kind == AuditKind::kParaphrase) {
          ++result.paraphrases;
          result.paraphrase += asked[f][p].said;
        }
      }
    }
    return result;
  };
  std::vector<Relearned> results{counted_up(0, first)};
  for (const int64_t count : counts_) {
    if (count > related()) {
      log_warning(
          cat("erase.relearn.counts: ", count, " facts are not trained: there are ", related(), " related ones"));
      continue;
    }
    results.push_back(counted_up(count, asked_after(model, facts, count)));
  }
  return results;
}

}  // namespace lancet
