#include "lancet/plan/model_session.h"

#include <ATen/Parallel.h>

#include <optional>

#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/devices.h"

namespace lancet {

void set_threads(const RunOptions& run) {
  if (run.threads > 0) at::set_num_threads(static_cast<int>(run.threads));
}

CausalLM load_model(const ModelFiles& files, const RunOptions& run, const Workload& work, KeptMatrices* kept) {
  set_threads(run);
  DeviceChoice choice = find_devices(run.devices, run.on_host);
  if (run.balance == Balance::kWork && choice.devices.size() > 1) measure_speeds(choice.devices, work.dtype);
  const JobPlan plan = plan_job(files.config, work, choice, run.balance);
  if (plan.placement.stages().size() > 1 || plan.placement.solve_on() == SolveOn::kHost)
    log_line("placement  " + plan.placement.description());
  if (!plan.idle.empty() && !choice.first_if_enough)
    log_line("placement  without a layer, since the model fits on the others: " + join(plan.idle));
  if (kept != nullptr) kept->set_room(plan.kept_room());
  return CausalLM::load(files.checkpoint, files.config, plan.placement, work.quantise_rule);
}

CausalLM load_replica(const ModelFiles& files, const RunOptions& run, const Workload& work, Communicator& communicator,
                      KeptMatrices* kept) {
  std::optional<CausalLM> model;
  communicator.run_collectively("load", [&] {
    model.emplace(load_model(files, run, work, kept));
    files.checkpoint.check_unchanged();  // a hash from before is of what was loaded
  });
  return std::move(*model);
}

}  // namespace lancet
