#include "evaluation_config.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "request_config.h"

namespace lancet {
namespace {

/// What is measured when the job does not say.
const std::vector<std::string> kDefaultProtocols{"efficacy", "paraphrase", "specificity", "generation"};

void check_protocols(ConfigSection& section, std::string_view key, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const ProtocolRow& row : protocol_table()) known.emplace_back(row.name);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string near = nearest(name, known);
      section.problem(
          key, cat("'", name, "': expected ", join(known), near.empty() ? "" : cat(". Did you mean ", near, "?")));
    } else if (std::find(names.begin(), names.begin() + static_cast<int64_t>(i), name) !=
               names.begin() + static_cast<int64_t>(i)) {
      section.problem(key, cat("'", name, "': stands twice"));
    }
  }
}

CostOptions parse_costs(ConfigSection section, const std::filesystem::path& base) {
  CostOptions costs;
  if (section.has("text")) {
    costs.text.emplace();
    costs.text->text = section.path("text", base);
    costs.text->tokens = section.integer("tokens", {.min = 2}, costs.text->tokens);
    costs.text->document_tokens = section.integer("document_tokens", {.min = 2}, costs.text->document_tokens);
  }
  if (section.has("probes")) {
    ConfigSection probes = section.section("probes");
    costs.probes.emplace();
    costs.probes->path = probes.path("path", base);
    costs.probes->options = parse_file_options(probes);
    probes.finish();
  }
  if (section.has("choices")) costs.choices = section.path("choices", base);
  section.finish();
  return costs;
}

CounterFactFiles parse_counterfact(ConfigSection section, const std::filesystem::path& base) {
  CounterFactFiles files;
  files.snippets = section.path("snippets", base);
  if (section.has("idf")) files.idf = section.path("idf", base);
  if (section.has("vocabulary")) files.vocabulary = section.path("vocabulary", base);
  if (files.idf.empty() != files.vocabulary.empty())
    section.problem(files.idf.empty() ? "vocabulary" : "idf", "expected idf and vocabulary together, or none of them");
  section.finish();
  return files;
}

std::filesystem::path parse_mquake(ConfigSection section, const std::filesystem::path& base) {
  std::filesystem::path examples = section.path("examples", base);
  section.finish();
  return examples;
}

/// Empty: the model's own.
std::string parse_chat_template(ConfigSection& section) {
  constexpr std::string_view kKey = "chat_template", kOfModel = "model";
  const std::string text = section.text(kKey, std::string(kOfModel));
  if (text == kOfModel) return "";
  try {
    ChatTemplate::by_hand(text);
  } catch (const ConfigError& error) {
    section.problem(kKey, cat(error.what(), ", or 'model'"));
  }
  return text;
}

}  // namespace

EvaluationOptions parse_evaluation(ConfigSection& job, const std::filesystem::path& base,
                                   const std::filesystem::path& model) {
  EvaluationOptions options;
  options.chat_template.model = model;
  const ConfigTree* evaluate = job.raw("evaluate");
  if (evaluate == nullptr || evaluate->kind != ConfigTree::Kind::kMap) {
    options.protocols = job.texts("evaluate", kDefaultProtocols);
    check_protocols(job, "evaluate", options.protocols);
    return options;
  }
  ConfigSection section = job.section("evaluate");
  const auto has_options_of = [&](std::string_view protocol) {
    if (!section.has(protocol)) return false;
    if (std::find(options.protocols.begin(), options.protocols.end(), protocol) == options.protocols.end())
      section.problem(protocol, cat("its files are for the protocol of that name: add ", protocol, " to metrics"));
    return true;
  };
  options.protocols = section.texts("metrics", kDefaultProtocols);
  check_protocols(section, "metrics", options.protocols);
  options.generated_tokens = section.integer("tokens", {.min = 1, .max = 100'000}, options.generated_tokens);
  options.distractor = section.text("distractor", options.distractor);
  options.chat_template.by_hand = parse_chat_template(section);
  if (section.has("costs")) options.costs = parse_costs(section.section("costs"), base);
  if (has_options_of("counterfact")) options.counterfact = parse_counterfact(section.section("counterfact"), base);
  if (has_options_of("mquake")) options.multihop_examples = parse_mquake(section.section("mquake"), base);
  section.finish();
  return options;
}

void check_metric(ConfigSection& section, std::string_view key, const std::string& name) {
  if (const ProtocolRow* row = find_protocol_of(name)) {
    if (std::find(row->no_shares.begin(), row->no_shares.end(), name) != row->no_shares.end())
      section.problem(key, cat("'", name, "': is no share from 0 to 1: expected a metric that is one"));
    return;
  }
  std::vector<std::string> names;
  for (const ProtocolRow& row : protocol_table()) names.insert(names.end(), row.metrics.begin(), row.metrics.end());
  const std::string near = nearest(name, names);
  section.problem(key, cat("'", name, "': unknown metric: expected ", join(names),
                           near.empty() ? "" : cat(". Did you mean ", near, "?")));
}

std::vector<std::pair<std::string, double>> parse_accept(ConfigSection& job, const EvaluationOptions& evaluation) {
  std::vector<std::pair<std::string, double>> accept = job.number_map("accept");
  for (const auto& [name, threshold] : accept) {
    check_metric(job, "accept", name);
    const ProtocolRow* row = find_protocol_of(name);
    if (row == nullptr) continue;
    if (std::find(evaluation.protocols.begin(), evaluation.protocols.end(), row->name) == evaluation.protocols.end())
      job.problem("accept", cat("'", name, "': is not measured: add ", row->name, " to evaluate"));
    if (threshold < 0 || threshold > 1)
      job.problem("accept", cat("'", name, "': ", threshold, ": expected a share from 0 to 1"));
  }
  return accept;
}

}  // namespace lancet
