#include "lancet/job/model_session.h"

#include <ATen/Parallel.h>

#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/runtime/devices.h"

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

DescribedModel describe_model(const std::filesystem::path& model, std::span<const std::string> ignore_config_keys) {
  namespace fs = std::filesystem;
  fs::path file = fs::is_regular_file(model) ? model : model / "config.json";
  if (!fs::exists(file)) file = Checkpoint::open(model).folder() / "config.json";  // a cache folder, or what is missing
  return {file.parent_path(),
          parse_model_config(read_text_file(file, "config.json"), "", ignore_config_keys, file.string())};
}

void set_threads(const RunOptions& run) {
  if (run.threads > 0) at::set_num_threads(static_cast<int>(run.threads));
}

CausalLM load_model(const ModelFiles& files, const RunOptions& run, const JobWork& work) {
  set_threads(run);
  DeviceChoice choice = share_of(find_devices(run.devices), run.on_host);
  if (run.balance == Balance::kWork && choice.devices.size() > 1) measure_speeds(choice.devices, work.dtype);
  const JobPlan plan = plan_job(files.config, work, choice, run.balance);
  if (plan.placement.stages().size() > 1) log_line("placement  " + plan.placement.description());
  if (!plan.idle.empty() && !choice.first_if_enough)
    log_line("placement  without a layer, since the model fits on the others: " + join(plan.idle));
  return CausalLM::load(files.checkpoint, files.config, plan.placement);
}

CausalLM load_replica(const ModelFiles& files, const RunOptions& run, const JobWork& work, Communicator& communicator) {
  std::optional<CausalLM> model;
  communicator.together("load", [&] { model.emplace(load_model(files, run, work)); });
  return std::move(*model);
}

}  // namespace lancet
