#include "lancet/job/model_session.h"

#include <ATen/Parallel.h>

#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/placement.h"

namespace lancet {

ModelFiles open_model(const std::filesystem::path& folder, std::span<const std::string> ignore_config_keys) {
  Checkpoint checkpoint = Checkpoint::open(folder);
  ModelConfig config = load_model_config(checkpoint, ignore_config_keys);
  resolve_weights(config, checkpoint);  // a checkpoint that does not fit is refused before anything else is done
  std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(checkpoint.folder());
  if (tokenizer->vocab_size() > config.vocab_size)
    throw TokenizerError(cat(checkpoint.folder().string(), ": the tokenizer has ", tokenizer->vocab_size(),
                             " ids, config.json's vocab_size is ", config.vocab_size,
                             ": the files belong to different models"));
  return {std::move(checkpoint), std::move(config), std::move(tokenizer)};
}

void set_threads(const RunOptions& run) {
  if (run.threads > 0) at::set_num_threads(static_cast<int>(run.threads));
}

CausalLM load_model(const ModelFiles& files, const RunOptions& run) {
  set_threads(run);
  const std::vector<at::Device> devices = parse_devices(run.devices);
  const at::ScalarType dtype = to_scalar_type(run.dtype.value_or(files.config.dtype));
  return CausalLM::load(files.checkpoint, files.config, plan_placement(files.config.n_layers, devices, dtype));
}

CausalLM load_replica(const ModelFiles& files, const RunOptions& run, Communicator& communicator) {
  std::optional<CausalLM> model;
  communicator.together("load", [&] { model.emplace(load_model(files, run)); });
  return std::move(*model);
}

}  // namespace lancet
