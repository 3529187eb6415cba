#include "lancet/plan/model_session.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <optional>

#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/models/layers_on_ranks.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

constexpr const char* kKey = "run.ranks_per_model";

void check_ranks_of(const RunOptions& run, const ModelConfig& config) {
  if (run.step_launch == LaunchMode::kGraph)
    throw ConfigError(cat("run.cuda_graphs: true: expected false with ", kKey, ": ", run.ranks_per_model,
                          ": a graph does not reach another rank"));
  if (run.solve_on == SolveOn::kDevice)
    throw ConfigError(cat("run.solve_on: device: expected auto or host with ", kKey, ": ", run.ranks_per_model,
                          ": rank 0 solves for all layers"));
  for (int64_t layer = 0; layer < config.n_layers; ++layer)
    if (config.has_recurrence(layer))
      throw ConfigError(cat(kKey, ": ", run.ranks_per_model, ": layer ", layer,
                            " has a recurrent mixer, whose states do not go from rank to rank: expected 1"));
}

/// Returns this rank's devices, of which the last one also has the head, followed by those of the other ranks.
DeviceChoice choose_over_ranks(const ModelConfig& config, const Workload& work, const RunOptions& run,
                               RankLinks& links) {
  DeviceChoice choice = find_devices(run.devices, run.on_host);
  choice.first_if_enough = false;
  DeviceBudget& last = choice.devices.back();
  if (config.n_layers > 1 && last.bytes < DeviceBudget::kUnknown) {
    const auto bytes_of = [&](int64_t layer) {
      return estimate_stage(config, work, {last.device, layer, layer + 1}, {}).total();
    };
    last.bytes -= std::max<int64_t>(0, bytes_of(config.n_layers - 1) - bytes_of(config.n_layers - 2));
  }
  for (const DeviceBudget& device : LayerPeers::devices(links)) choice.devices.push_back(device);
  return choice;
}

void tell_placement(const JobPlan& plan, const DeviceChoice& choice) {
  const Placement& placement = plan.placement;
  if (placement.stages().size() > 1 || placement.solve_on() == SolveOn::kHost)
    log_line("placement  " + placement.description());
  if (!plan.idle.empty() && !choice.first_if_enough)
    log_line("placement  without a layer, since the model fits on the others: " + join(plan.idle));
}

CausalLM load_over_ranks(const ModelFiles& files, const RunOptions& run, Workload work, RankLinks& links,
                         KeptMatrices* kept) {
  set_threads(run);
  check_ranks_of(run, files.config);
  work.solve_on = SolveOn::kHost;
  const DeviceChoice choice = choose_over_ranks(files.config, work, run, links);
  const JobPlan plan = plan_job(files.config, work, choice, run.balance);
  tell_placement(plan, choice);
  if (kept != nullptr) kept->set_room(plan.kept_room());
  const auto peers = std::make_shared<LayerPeers>(links);
  peers->begin_load(files.checkpoint, plan.placement, work.quantise_rule);
  Placement placement = plan.placement;
  placement.put_elsewhere_on(placement.last_device_here().value_or(choice.devices.front().device));
  CausalLM model = CausalLM::load_part(files.checkpoint, files.config, placement, work.quantise_rule, peers);
  peers->finish_load(files.checkpoint, files.config, placement);
  return model;
}

void check_whole(const RunOptions& run) {
  if (run.ranks_per_model != 1)
    throw ConfigError(cat(kKey, ": ", run.ranks_per_model, ": expected 1 (--set ", kKey, "=1): only edit, eval, stats ",
                          "and compare of `lancet launch -n ", run.ranks_per_model, " -- ...` spread a model"));
}

}  // namespace

void set_threads(const RunOptions& run) {
  if (run.threads > 0) at::set_num_threads(static_cast<int>(run.threads));
}

CausalLM load_model(const ModelFiles& files, const RunOptions& run, const Workload& work, KeptMatrices* kept) {
  check_whole(run);
  set_threads(run);
  DeviceChoice choice = find_devices(run.devices, run.on_host);
  if (run.balance == Balance::kWork && choice.devices.size() > 1) measure_speeds(choice.devices, work.dtype);
  const JobPlan plan = plan_job(files.config, work, choice, run.balance);
  tell_placement(plan, choice);
  if (kept != nullptr) kept->set_room(plan.kept_room());
  return CausalLM::load(files.checkpoint, files.config, plan.placement, work.quantise_rule);
}

CausalLM load_replica(const ModelFiles& files, const RunOptions& run, const Workload& work, Communicator& communicator,
                      KeptMatrices* kept) {
  std::optional<CausalLM> model;
  communicator.run_collectively("load", [&] {
    RankLinks* links = communicator.model_ranks();
    model.emplace(links != nullptr ? load_over_ranks(files, run, work, *links, kept)
                                   : load_model(files, run, work, kept));
    files.checkpoint.check_unchanged();  // then the hash from before belongs to what was loaded
  });
  return std::move(*model);
}

ExitCode run_on_model_ranks(const RunOptions& run, std::span<const std::string> ignore_config_keys, Communicator& ranks,
                            const std::function<ExitCode(Communicator&)>& work) {
  if (run.ranks_per_model == 1) return work(ranks);
  ExitCode code = ExitCode::kOk;
  ranks.run_collectively("layers", [&] {
    if (run.ranks_per_model != ranks.size())
      throw ConfigError(cat(kKey, ": ", run.ranks_per_model, ": expected 1, or as many as there are processes, got ",
                            ranks.size(), ": `lancet launch -n ", run.ranks_per_model, " -- ...` starts them"));
    if (!ranks.is_root()) {
      set_threads(run);
      const LayerService service{find_devices(run.devices, run.on_host).devices,
                                 {ignore_config_keys.begin(), ignore_config_keys.end()}};
      code = static_cast<ExitCode>(serve_layers(ranks, service));
      return;
    }
    RankLinks links(ranks);
    ModelRoot root(links);
    try {
      code = work(root);
    } catch (...) {
      end_service(links, static_cast<int64_t>(ExitCode::kInternal));
      if (links.has_failed()) ranks.barrier();  // throws the error of the other rank
      throw;
    }
    end_service(links, static_cast<int64_t>(code));
  });
  return code;
}

}  // namespace lancet
