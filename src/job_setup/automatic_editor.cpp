#include "automatic_editor.h"

#include <iterator>

#include "lancet/core/error.h"
#include "lancet/job/dotted_key.h"
#include "lancet/spec/evaluate_spec.h"
#include "lancet/spec/layered_spec.h"
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
    const NamedModel model = named_model(job, source);
    // most models without a template end here, before more files are read
    static_cast<void>(ChatTemplate::of(model.path));
    return is_for_chats(open_model(model.path, model.ignored_keys));
  } catch (const Error&) {
    return false;
  }
}

ConfigTree list_of(std::vector<std::string> texts) {
  std::vector<ConfigTree> items;
  for (std::string& text : texts) items.push_back(ConfigTree::text(std::move(text)));
  return ConfigTree::list(std::move(items));
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

ConfigTree with_chat(ConfigTree contexts) {
  contexts.set(kChat, ConfigTree::text("model"));
  return contexts;
}

std::vector<std::string> protocols_for(bool chats) {
  std::vector<std::string> names(std::begin(kDefaultProtocols), std::end(kDefaultProtocols));
  if (chats) names.emplace_back(kChat);
  return names;
}

ConfigTree automatic_entities() {
  ConfigTree entities = ConfigTree::map();
  entities.set("weight", ConfigTree::number(int64_t{1}));
  return entities;
}

void choose_chat_context(ConfigTree& editor, ConfigTree& job, const JobSource& source) {
  if (!takes_chat_context(editor) || !has_model_for_chats(job, source)) return;
  editor.set("contexts", with_chat(ConfigTree::map()));
  if (job.find("evaluate") == nullptr) job.set("evaluate", list_of(protocols_for(/*chats=*/true)));
}

void choose_entities(ConfigTree& editor, const ConfigTree& job) {
  const ConfigTree* method = editor.find("method");
  if (method == nullptr || !has_option(LayeredSpec::kEntities, method->scalar)) return;
  for (const char* key : {"entities", "covariance"})
    if (editor.find(key) != nullptr) return;
  if (find_dotted(job, "statistics.import_null_space") != nullptr) return;
  editor.set("entities", automatic_entities());
}

}  // namespace lancet
