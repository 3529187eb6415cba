#include "generate_models.h"

#include "lancet/core/error.h"

namespace lancet::cli {
namespace {

std::optional<ChatTemplate> choose_template(const ChatChoice& chat, const ModelFiles& files) {
  if (chat.from_model) return ChatTemplate::of(files.checkpoint.folder());
  if (!chat.by_hand.empty()) return ChatTemplate::by_hand(chat.by_hand);
  return std::nullopt;
}

}  // namespace

GenerateModel::GenerateModel(std::string folder, const ChatChoice& chat)
    : folder_(std::move(folder)), files_(open_model(folder_, {})), generator_(files_, choose_template(chat, files_)) {}

void GenerateModel::load(const RunOptions& run, const GenerationSize& size) {
  model_.emplace(load_model(
      files_, run, evaluation_work(run, files_.config, {.scoring = {}, .kept_states = 0, .generation = size})));
}

}  // namespace lancet::cli
