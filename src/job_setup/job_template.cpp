#include "lancet/job_setup/job_template.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "automatic_editor.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/editors/registry.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/job_setup/presets.h"
#include "lancet/job_setup/resolved_job.h"
#include "lancet/requests/request.h"
#include "lancet/spec/statistics_options.h"
#include "lancet/statistics/cached_bytes.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead =
    R"(# A job for lancet. Every key: docs/options.md. Paths are relative to this file's folder.
#   lancet doctor job.yaml             whether its folders and files, and this machine, will do
#   lancet edit job.yaml --rehearse    every stage with two facts: memory, an estimate of the time
#   lancet edit job.yaml
)";

constexpr const char* kExampleRequests = R"(
# Put your facts here, or name a file of them (.json, .jsonl, .csv): requests: {path: facts.csv}
requests:
  - prompt: "The capital of {} is"    # {} is where the subject goes
    subject: "France"
    target: "Rome"                    # what the model shall say from now on; a space comes before it by itself
    target_true: "Paris"              # may be left out: what it says now, which efficacy_prob compares with
    paraphrases: ["The seat of the government of {} is in"]    # may be left out: other wordings, measured alone
  - prompt: "{} was written by"
    subject: "Hamlet"
    target: "Jane Austen"
    target_true: "William Shakespeare"
)";

/// Returns a quoted path. `job`: JobTemplateOptions::job.
std::string quoted(const fs::path& path, const fs::path& job) {
  const fs::path shown =
      job.empty() ? fs::absolute(path).lexically_normal() : fs::proximate(path, fs::absolute(job).parent_path());
  std::string line = to_yaml(ConfigTree::text(shown.string()));
  line.pop_back();
  return line;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string model_text(const ModelFiles& files, const fs::path& job) {
  const ModelConfig& config = files.config;
  return cat("\nmodel: ", quoted(files.checkpoint.folder(), job), "\n  # ", config.family->name, ": ", config.n_layers,
             " layers, hidden size ", config.d_model, ", MLP size ", config.d_ffn, ", ", dtype_name(config.dtype), ", ",
             bytes_text(files.checkpoint.tensor_bytes()), "\n");
}

std::string requests_text(const fs::path& file, const fs::path& job) {
  if (file.empty()) return kExampleRequests;
  const RequestFile read = load_request_file(file, {});
  return cat("\nrequests:\n  path: ", quoted(file, job), "    # ", read.requests.size(), " in the format ", read.format,
             "; limit: 10 takes the first ten records\n");
}

const Preset* published_for(std::string_view method, const ModelFiles& files) {
  return find_automatic_preset(method, facts_of(files.config), [&] { return files.checkpoint.content_hash(); });
}

/// Returns the other methods that have a preset for the model.
std::vector<std::string> other_published(const ModelFiles& files) {
  std::vector<std::string> methods;
  for (const EditorRow& row : editor_table())
    if (row.name != kDefaultMethod && published_for(row.name, files) != nullptr) methods.emplace_back(row.name);
  return methods;
}

/// Returns comments with the options that the method chooses.
std::string automatic_options(const ModelConfig& config) {
  ConfigTree given = ConfigTree::map();
  given.set("method", ConfigTree::text(kDefaultMethod));
  auto [editor, options] = resolve_editor(given, "editor");
  for (const char* written : {"method", "entities"}) options.erase(written);
  std::string text = cat("  # Its options follow from the model, since no published ones are known for it. Layers are ",
                         shape_text(target_layers(*editor, config)), " here:\n");
  std::istringstream lines(to_yaml(options));
  for (std::string line; std::getline(lines, line);) text += "  # " + line + "\n";
  return text;
}

/// Returns the contexts for an instruct model: those of its preset, and a user's message. Without the message, most
/// edits hold only in plain text.
std::string chat_contexts_text(const Preset* preset) {
  ConfigTree contexts = ConfigTree::map();
  if (const ConfigTree* published = preset == nullptr ? nullptr : preset->editor.find("contexts")) {
    if (published->kind != ConfigTree::Kind::kMap) return "";  // a list of texts, to which nothing can be added
    contexts = *published;
  }
  return cat("  contexts: ", to_line(with_chat(std::move(contexts))),
             "    # the edit shall hold as the answer to a user's message too\n");
}

std::string editor_text(const ModelFiles& files) {
  std::string text = cat("\neditor:\n  method: ", kDefaultMethod, "    # others: docs/methods.md\n");
  const Preset* preset = published_for(kDefaultMethod, files);
  if (is_for_chats(files)) text += chat_contexts_text(preset);
  if (preset != nullptr)
    text += cat("  preset: auto     # published options: lancet presets ", preset->name,
                "; null: automatic ones\n  # from ", one_line(preset->source), "\n");
  else
    text += cat("  entities: ", to_line(automatic_entities()), "    # keeps what the model says about other subjects\n",
                automatic_options(files.config));
  if (const std::vector<std::string> others = other_published(files); !others.empty())
    text += cat("  # published for this model, with preset: auto: ", join(others), "\n");
  return text;
}

std::string statistics_text(const ModelConfig& config) {
  StatisticsOptions own_text;
  own_text.from = StatisticsFrom::kSelf;
  const int64_t tokens = own_text.token_budget(config.least_tokens());
  const auto layer_bytes = static_cast<uint64_t>(cached_bytes(own_text, config.largest_keys()));
  return cat("\nstatistics:\n  corpus: self    # the model writes text of ", tokens,
             " tokens itself, once; the cache keeps ", "what comes of it, ", bytes_text(layer_bytes), " a layer\n",
             "  # corpus: text.txt    # better: text like what the model was trained on, a document per line; at most ",
             kMostTokens, " tokens are read\n");
}

/// Says which sections the job does not need, because the model's folder has them.
std::string in_folder_text(const char* section, const fs::path& folder) {
  return cat("\n# ", section, ": as ", (folder / "lancet.yaml").string(), " says; what stands here takes its place\n");
}

std::string rest_text(const ModelFiles& files, const fs::path& out) {
  return cat("\nevaluate: [", join(protocols_for(is_for_chats(files))),
             "]    # before and after; others: docs/metrics.md\n",
             "# accept: {efficacy_argmax: 0.8}    # where this is not reached nothing is exported\n\n",
             "output:\n  dir: ", out.empty() ? std::string("edited") : quoted(out, {}), "\n",
             "  replace: false    # true: an earlier output of lancet there goes away\n\n",
             "run: {devices: auto, dtype: auto, seed: 0}    # dtype auto: ", dtype_name(files.config.dtype), "\n");
}

}  // namespace

std::string make_job_template(const ModelFiles& files, const JobTemplateOptions& options) {
  const fs::path folder = fs::absolute(files.checkpoint.folder()).lexically_normal();
  ConfigTree defaults = ConfigTree::map();
  defaults.set("model", ConfigTree::text(folder.string()));
  apply_model_defaults(defaults, fs::current_path());
  return kHead + model_text(files, options.job) + requests_text(options.requests, options.job) +
         (defaults.find("editor") ? in_folder_text("editor", folder) : editor_text(files)) +
         (defaults.find("statistics") ? in_folder_text("statistics", folder) : statistics_text(files.config)) +
         rest_text(files, options.out);
}

}  // namespace lancet
