#include "automatic_editor.h"

#include <string>

#include "lancet/core/config_section.h"
#include "lancet/core/error.h"
#include "lancet/job/dotted_key.h"
#include "lancet/spec/evaluate_spec.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/layered_spec.h"
#include "lancet/spec/read_option.h"
#include "lancet/text/chat_template.h"

namespace lancet {
namespace {

constexpr const char* kChat = "chat";

bool takes_chat_context(const ConfigTree& editor) {
  const ConfigTree* method = editor.find("method");
  if (method == nullptr || !has_option(LayeredSpec::kContexts, method->scalar)) return false;
  for (const char* key : {"contexts", "compat"})
    if (editor.find(key) != nullptr) return false;
  return find_dotted(editor, "values.chunk_tokens") == nullptr;
}

bool has_model_for_chats(const ConfigTree& job, const JobSource& source) {
  try {
    ConfigProblems problems(source.name);
    ConfigSection section(job, "", problems);
    const std::filesystem::path model = section.path(JobSpec::kModel.key, source.base);
    const std::vector<std::string> ignored = section.texts(JobSpec::kIgnoreConfigKeys.key, std::vector<std::string>{});
    problems.throw_if_any();
    static_cast<void>(ChatTemplate::of(model));  // most models without a template end here, before more files are read
    return is_for_chats(open_model(model, ignored));
  } catch (const Error&) {
    return false;
  }
}

/// Returns what is measured by default, and `chat`.
ConfigTree protocols_with_chat() {
  std::vector<ConfigTree> names;
  for (const std::string_view name : kDefaultProtocols) names.push_back(ConfigTree::text(std::string(name)));
  names.push_back(ConfigTree::text(kChat));
  return ConfigTree::list(std::move(names));
}

}  // namespace

bool is_for_chats(const ModelFiles& files) {
  try {
    static_cast<void>(ChatTemplate::of(files.checkpoint.folder()).context(*files.tokenizer));
    return true;
  } catch (const Error&) {
    return false;
  }
}

void choose_chat_context(ConfigTree& editor, ConfigTree& job, const JobSource& source) {
  if (!takes_chat_context(editor) || !has_model_for_chats(job, source)) return;
  ConfigTree contexts = ConfigTree::map();
  contexts.set(kChat, ConfigTree::text("model"));
  editor.set("contexts", std::move(contexts));
  if (job.find(std::string(JobSpec::kEvaluate.key)) == nullptr)
    job.set(std::string(JobSpec::kEvaluate.key), protocols_with_chat());
}

void choose_entities(ConfigTree& editor, const ConfigTree& job) {
  const ConfigTree* method = editor.find("method");
  if (method == nullptr || !has_option(LayeredSpec::kEntities, method->scalar)) return;
  for (const char* key : {"entities", "covariance"})
    if (editor.find(key) != nullptr) return;
  if (find_dotted(job, "statistics.import_null_space") != nullptr) return;
  ConfigTree entities = ConfigTree::map();
  entities.set("weight", ConfigTree::number(int64_t{1}));
  editor.set("entities", std::move(entities));
}

}  // namespace lancet
