#include "hparams_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

#include "lancet/checkpoint/module_name.h"
#include "lancet/core/strings.h"
#include "lancet/models/weight_table.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using Fate = ImportedKey::Fate;

constexpr std::string_view kTuned = " ft ft-l ft-m ";
constexpr std::string_view kRome = " rome r-rome ";

KeyFate same(std::string what) { return {Fate::kSame, std::move(what)}; }
KeyFate mapped(std::string_view to) { return {Fate::kMapped, std::string(to)}; }

/// Returns the names that a family's weight has in its checkpoints, without ".weight".
std::vector<std::string> module_names(const Family& family, const WeightRow& row) {
  const std::string name(module_of(row.name));
  std::vector<std::string> names{name};
  for (const PrefixList& prefixes : family.other_names)
    if (std::string other = renamed(name, prefixes); other != name) names.push_back(std::move(other));
  return names;
}

/// Returns the part of `name` at the place where the pattern has "{}"; nullopt if the name does not match.
std::optional<std::string> layer_in(std::string_view name, std::string_view pattern) {
  const size_t layer = pattern.find("{}");
  const std::string_view before = pattern.substr(0, layer), after = pattern.substr(layer + 2);
  if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) return {};
  std::string number(name.substr(before.size(), name.size() - before.size() - after.size()));
  return number.find('.') == std::string::npos ? std::optional(std::move(number)) : std::nullopt;
}

/// The kind of weight, and the layer if there is one, of a name like "model.layers.4.mlp.down_proj" (also with "{}", or
/// after ".weight" was removed), in the names of any family.
struct Module {
  std::string kind;
  std::string layer;
};
std::optional<Module> parse_module(std::string_view name) {
  name = module_of(name);
  constexpr std::pair<WeightKind, std::string_view> kKinds[] = {
      {WeightKind::kGate, "gate"}, {WeightKind::kUp, "up"}, {WeightKind::kDown, "down"}};
  for (const Family* family : families()) {
    for (const WeightRow& row : family->weights) {
      const auto kind =
          std::find_if(std::begin(kKinds), std::end(kKinds), [&](auto& k) { return k.first == row.kind; });
      // a fused gate and up projection has no name for one of them
      const bool is_fused = std::count_if(family->weights.begin(), family->weights.end(),
                                          [&](const WeightRow& other) { return other.name == row.name; }) > 1;
      if (kind == std::end(kKinds) || is_fused) continue;
      for (const std::string& pattern : module_names(*family, row))
        if (std::optional<std::string> layer = layer_in(name, pattern))
          return Module{std::string(kind->second), std::move(*layer)};
    }
  }
  return std::nullopt;
}

void refuse(HparamsImport& import, const std::string& key, std::string_view value, std::string_view expected) {
  import.file.problem(key, cat("'", excerpt(value, 80), "': expected ", expected));
}

KeyFate map_layers(HparamsImport& import, const std::string& key) {
  ConfigTree layers = *import.file.raw(key);
  import.file.integers(key, {.min = 0});
  if (kTuned.find(cat(" ", import.method, " ")) == std::string_view::npos) {
    import.put("editor.layers", std::move(layers));
    return mapped("editor.layers");
  }
  const std::optional<Module> module =
      parse_module(import.file.text("rewrite_module_tmp", "model.layers.{}.mlp.down_proj"));
  const std::string to = cat("editor.modules.", module ? module->kind : "down");
  import.put(to, std::move(layers));
  return mapped(to);
}

KeyFate map_module(HparamsImport& import, const std::string& key) {
  const ConfigTree* value = import.file.raw(key);
  const std::vector<std::string> names =
      value->kind == ConfigTree::Kind::kList ? import.file.texts(key) : std::vector<std::string>{import.file.text(key)};
  const bool is_tuned = kTuned.find(cat(" ", import.method, " ")) != std::string_view::npos;
  for (const std::string& name : names) {
    const std::optional<Module> module = parse_module(name);
    if (!module || (!is_tuned && module->kind != "down"))
      refuse(import, key, name,
             is_tuned ? "an MLP projection by its name in the model, as model.layers.{}.mlp.down_proj"
                      : "model.layers.{}.mlp.down_proj or another family's name of it: the method changes down "
                        "projections alone");
  }
  return is_tuned ? mapped("editor.modules") : same("the down projections");
}

/// Maps a list of full names like "model.layers.11.mlp.gate_proj".
KeyFate map_modules(HparamsImport& import, const std::string& key) {
  std::vector<std::pair<std::string, std::vector<ConfigTree>>> kinds{{"gate", {}}, {"up", {}}, {"down", {}}};
  for (const std::string& name : import.file.texts(key)) {
    const std::optional<Module> module = parse_module(name);
    const std::optional<int64_t> layer = module ? parse_whole_number(module->layer) : std::nullopt;
    if (!layer)
      refuse(import, key, name, "MLP projections by their names in the model, as model.layers.11.mlp.gate_proj");
    for (auto& [kind, layers] : kinds)
      if (layer && module->kind == kind) layers.push_back(ConfigTree::number(*layer));
  }
  for (auto& [kind, layers] : kinds)
    if (!layers.empty()) import.put(cat("editor.modules.", kind), ConfigTree::list(std::move(layers)));
  return mapped("editor.modules");
}

KeyFate need_subject_last(HparamsImport& import, const std::string& key) {
  const std::string token = import.file.text(key);
  if (token != "subject_last") refuse(import, key, token, "subject_last: lancet edits at the subject's last token");
  return same("the subject's last token");
}

KeyFate need_all_layers(HparamsImport& import, const std::string& key) {
  const std::string selection = import.file.text(key);
  if (selection != "all") refuse(import, key, selection, "all: lancet changes every layer that is named");
  return same("all layers that are named");
}

KeyFate map_contexts(HparamsImport& import, const std::string& key) {
  int64_t count = 0, longest = 0;
  bool differ = false;
  const auto number = [](const ConfigTree& tree) { return parse_whole_number(tree.scalar).value_or(0); };
  for (const ConfigTree& pair : import.file.raw(key)->items) {
    if (pair.items.size() != 2 || number(pair.items[0]) < 1 || number(pair.items[1]) < 1) {
      import.file.problem(key, "expected a list of [length, count]");
      return mapped("editor.contexts");
    }
    differ = differ || (longest > 0 && longest != number(pair.items[0]));
    longest = std::max(longest, number(pair.items[0]));
    count += number(pair.items[1]);
  }
  import.put("editor.contexts.generate", ConfigTree::number(count));
  import.put("editor.contexts.length", ConfigTree::number(longest));
  return mapped(differ ? "editor.contexts; lancet's are all of the longest length" : "editor.contexts");
}

KeyFate map_adjustment(HparamsImport& import, const std::string& key) {
  const bool adjusts = import.file.boolean(key, true);
  if (kRome.find(cat(" ", import.method, " ")) == std::string_view::npos)
    return {Fate::kNotUsed, "the method always uses the covariance, there too"};
  import.put("editor.covariance", *import.file.raw(key));
  return mapped(adjusts ? "editor.covariance" : "editor.covariance: no statistics are needed");
}

KeyFate check_loss_layer(HparamsImport& import, const std::string& key) {
  const int64_t layer = import.file.integer(key, {.min = 0});
  if (import.model == nullptr)
    return same("if it is the model's last layer, from which lancet takes the loss (--model checks)");
  if (layer != import.model->n_layers - 1)
    return {Fate::kNotUsed, cat("lancet takes the loss from the last layer, ", import.model->n_layers - 1)};
  return same("the model's last layer");
}

KeyFate map_constraint(HparamsImport& import, const std::string& key) {
  if (const ConfigTree* value = import.file.raw(key); value->scalar == "false") return same("none");
  import.file.number(key, {.min = 1e-12});
  import.put("editor.norm_constraint", *import.file.raw(key));
  return mapped("editor.norm_constraint");
}

KeyFate map_tokens(HparamsImport& import, const std::string& key) {
  const std::string tokens = import.file.text(key);
  if (tokens != "ans" && tokens != "mask") refuse(import, key, tokens, "ans or mask");
  import.put("editor.tokens", ConfigTree::text(tokens == "ans" ? "answer" : "all"));
  return mapped("editor.tokens");
}

/// As in the public code, the last of the three flags that is set decides.
KeyFate map_key_mode(HparamsImport& import, const std::string& key) {
  if (!import.file.boolean(key, false)) return same("off");
  const std::string mode = key == "original_implementation" ? "original"
                           : key == "enable_prompt_keys"    ? "prompt"
                                                            : "prefix";
  if (const ConfigTree* editor = import.job.find("editor"); editor->find("keys") != nullptr)
    import.file.problem(key, "more than one of the three ways to take keys is on");
  import.put("editor.keys", ConfigTree::text(mode));
  return mapped("editor.keys: " + mode);
}

/// In that code the last iteration makes no update.
KeyFate map_iterations(HparamsImport& import, const std::string& key) {
  import.put("editor.passes", ConfigTree::number(import.file.integer(key, {.min = 2, .max = 101}) - 1));
  return mapped("editor.passes: one less, as there the last iteration changes nothing");
}

KeyFate map_half(HparamsImport& import, const std::string& key) {
  if (!import.file.boolean(key, false)) return same("off");
  import.put("run.dtype", ConfigTree::text(key == "bf16" ? "bf16" : "f16"));
  return mapped("run.dtype");
}

KeyFate map_objective(HparamsImport& import, const std::string& key) {
  const std::string objective = import.file.text(key);
  if (objective != "prompt_last" && objective != "target_new")
    refuse(import, key, objective, "prompt_last or target_new");
  return mapped("editor.method: " + import.method);
}

KeyFate map_method(HparamsImport& import, const std::string& key) {
  if (import.file.text(key) != "MEMIT-FE") return mapped("editor.method: " + import.method);
  import.put("editor.targets", ConfigTree::text("replay"));
  return mapped("editor.method: memit, editor.targets: replay");
}

KeyFate map_projection(HparamsImport& import, const std::string& key) {
  const fs::path file = import.file.path(key, import.folder);
  if (!fs::exists(file))
    return {Fate::kNotUsed, cat("there is no ", file.string(), "; statistics.import_null_space takes such a file")};
  import.put("statistics.import_null_space", ConfigTree::text(file.string()));
  return mapped("statistics.import_null_space");
}

constexpr std::string_view kOfConfig = "config.json says it";
constexpr std::string_view kOfRun = "of the run, not of the method: run.devices and run.dtype";
constexpr std::string_view kOfStatistics =
    "statistics are the job's: corpus, or import for the .npz files that were made with it";

constexpr HparamsRule kRules[] = {
    {"alg_name", "", "", "", map_method},
    {"layers", "", "", "", map_layers},
    {"rewrite_module_tmp", "", "", "", map_module},
    {"rewrite_module_tmps", "", "", "", map_module},
    {"inner_params", " ultraedit ", "", "", map_modules},
    {"edit_modules", " ultraedit ", "", "", map_modules},
    {"fact_token", "", "", "", need_subject_last},
    {"layer_selection", "", "", "", need_all_layers},
    {"v_num_grad_steps", "", "values.steps"},
    {"v_lr", "", "values.lr"},
    {"v_weight_decay", "", "values.weight_decay"},
    {"clamp_norm_factor", "", "values.clamp"},
    {"kl_factor", kTuned, "", "fine-tuning has no KL term, there either"},
    {"kl_factor", "", "values.kl"},
    {"nll_loss_factor", " pmet ", "values.nll_factor"},
    {"v_loss_layer", "", "", "", check_loss_layer},
    {"mom2_adjustment", "", "", "", map_adjustment},
    {"mom2_update_weight", " memit emmet pmet nse ", "covariance_weight"},
    {"mom2_update_weight", "", "", "the method has no such weight; the public code does not read it either"},
    {"update_norm_lambda", " memit emmet ", "identity_weight"},
    {"emmet_lambda", " emmet ", "slack"},
    {"emmet_lambda", "", "", "EMMET's alone"},
    {"alpha", " nse ", "residual_above"},
    {"upper_bound", " nse ", "residual_below"},
    {"neuron_threshold", " nse ", "neurons"},
    {"max_iterations", " nse ", "", "", map_iterations},
    {"nullspace_threshold", " alphaedit ", "null_space_below"},
    {"L2", " alphaedit ", "ridge"},
    {"P_loc", " alphaedit ", "", "", map_projection},
    {"context_template_length_params", kRome, "", "", map_contexts},
    {"enable_random_prefix_keys", " r-rome ", "", "", map_key_mode},
    {"enable_prompt_keys", " r-rome ", "", "", map_key_mode},
    {"original_implementation", " r-rome ", "", "", map_key_mode},
    {"objective_optimization", kTuned, "", "", map_objective},
    {"norm_constraint", kTuned, "", "", map_constraint},
    {"num_steps", kTuned, "steps"},
    {"lr", " ft ft-l ft-m ultraedit ", "lr"},
    {"weight_decay", kTuned, "weight_decay"},
    {"batch_size", kTuned, "batch"},
    {"batch_size", "", "", "requests of a batch are the job's"},
    {"batch_size_once", " ultraedit ", "batch"},
    {"token", " ultraedit ", "", "", map_tokens},
    {"fp16", "", "", "", map_half},
    {"bf16", "", "", "", map_half},
    {"model_name", "", "", "the job's model; presets go by config.json, never by name"},
    {"name_or_path", "", "", "the job's model; presets go by config.json, never by name"},
    {"model_class", "", "", kOfConfig},
    {"class_name", "", "", kOfConfig},
    {"tokenizer_class", "", "", kOfConfig},
    {"tokenizer_name", "", "", "the tokenizer is the model folder's"},
    {"layer_module_tmp", "", "", kOfConfig},
    {"mlp_module_tmp", "", "", kOfConfig},
    {"attn_module_tmp", "", "", kOfConfig},
    {"ln_f_module", "", "", kOfConfig},
    {"lm_head_module", "", "", kOfConfig},
    {"stats_dir", "", "", kOfStatistics},
    {"mom2_dataset", "", "", kOfStatistics},
    {"mom2_n_samples", "", "", kOfStatistics},
    {"mom2_dtype", "", "", "lancet sums second moments in f64"},
    {"device", "", "", kOfRun},
    {"model_parallel", "", "", kOfRun},
    {"half", "", "", kOfRun},
    {"max_length", "", "", "no text of a request is cut"},
    {"editor_batch_size", " ultraedit ", "", "tokens that are summed together: lancet solves for all of a batch"},
    {"dropout", " ultraedit ", "", "nothing is dropped out in either"},
    {"no_grad_layers", " ultraedit ", "", "backward passes end at the lowest module"},
    {"wd_power_law", kTuned, "", "give editor.weight_decay"},
    {"calculate_objective_value", "", "", "it only shows a number"},
    {"evaluation_type", "", "", "what is measured is the job's evaluate"},
    {"silent", "", "", "--quiet"},
    {"results_dir", "", "", "output.dir is the job's"},
};

}  // namespace

void HparamsImport::put(std::string_view dotted_key, ConfigTree value) {
  forget_lines(value);
  if (set_at(job, split(dotted_key, '.'), std::move(value)))
    throw std::logic_error(cat("hyper-parameters: ", dotted_key, " runs through what is no map"));
}

const HparamsRule* find_rule(std::string_view key, std::string_view method) {
  const std::string word = cat(" ", method, " ");
  for (const HparamsRule& rule : kRules)
    if (rule.key == key && (rule.methods.empty() || rule.methods.find(word) != std::string_view::npos)) return &rule;
  return nullptr;
}

}  // namespace lancet
