#include "lancet/plan/job_plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "kept_room.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/step_graph.h"
#include "lancet/statistics/covariance.h"
#include "lancet/training/values.h"

namespace lancet {
namespace {

std::string name_of(at::Device device, int64_t rank) {
  return cat(rank == Stage::kHere ? "" : cat("rank ", rank, "'s "), device.str());
}

std::string size_text(int64_t bytes) { return binary_bytes_text(static_cast<uint64_t>(bytes)); }

/// The split of layers over devices: ends[k] is the first layer after those of device k and of all earlier devices.
using Ends = std::vector<int64_t>;

enum class HostUse { kSpare, kLikeOthers };
/// What the search minimises, after the number of layers on a spare host.
enum class Aim { kMost, kSquares };

/// Finds the best split by dynamic programming over (devices, layers).
class SplitSearch {
 public:
  /// Returns the cost of layers begin..end-1 on a device; nullopt if this is impossible.
  using StageCost = std::function<std::optional<double>(const DeviceBudget&, LayerRange)>;

  SplitSearch(int64_t n_layers, std::span<const DeviceBudget> devices, HostUse host)
      : n_layers_(n_layers), devices_(devices) {
    host_is_spare_ = host == HostUse::kSpare &&
                     std::any_of(devices.begin(), devices.end(), [](const DeviceBudget& d) { return !d.is_host(); });
  }

  /// Returns a split with the smallest cost of its most expensive stage. Among such splits it is the one whose numbers
  /// of layers, relative to the devices' budgets, are most even.
  std::optional<Ends> run(const StageCost& cost) const {
    const std::optional<Found> least = search(Aim::kMost, cost);
    if (!least) return std::nullopt;
    const double limit = least->value * (1 + 1e-12);
    const auto within = [&](const DeviceBudget& device, LayerRange layers) {
      const std::optional<double> c = cost(device, layers);
      const auto even = static_cast<double>(layers.end - layers.begin) / static_cast<double>(device.bytes);
      return c && (*c <= limit || is_spare(device)) ? std::optional(even) : std::nullopt;
    };
    return search(Aim::kSquares, within)->ends;
  }

 private:
  struct Best {
    bool is_possible = false;
    int64_t host_layers = 0;
    double value = 0;
    size_t begin = 0;
  };
  struct Found {
    Ends ends;
    double value;
  };

  bool is_spare(const DeviceBudget& device) const { return host_is_spare_ && device.is_host(); }

  std::optional<Found> search(Aim aim, const StageCost& cost) const {
    const auto n = static_cast<size_t>(n_layers_) + 1;
    std::vector<std::vector<Best>> best(devices_.size() + 1, std::vector<Best>(n));
    best[0][0].is_possible = true;
    for (size_t k = 0; k < devices_.size(); ++k)
      for (size_t begin = 0; begin < n; ++begin)
        if (best[k][begin].is_possible) extend(aim, cost, {k, begin}, best);
    if (!best.back().back().is_possible) return std::nullopt;
    Found found{Ends(devices_.size()), best.back().back().value};
    size_t end = n - 1;
    for (size_t k = devices_.size(); k-- > 0;) {
      found.ends[k] = static_cast<int64_t>(end);
      end = best[k + 1][end].begin;
    }
    return found;
  }

  /// Extends the search by every stage of device `from.first` that begins at layer `from.second`.
  void extend(Aim aim, const StageCost& cost, std::pair<size_t, size_t> from,
              std::vector<std::vector<Best>>& best) const {
    const auto [k, begin] = from;
    const DeviceBudget& device = devices_[k];
    const Best& before = best[k][begin];
    for (size_t end = begin; end < best[k].size(); ++end) {
      const LayerRange layers{static_cast<int64_t>(begin), static_cast<int64_t>(end)};
      const std::optional<double> c = end == begin ? std::optional(0.0) : cost(device, layers);
      if (!c) break;  // more layers need even more
      Best reached{true, before.host_layers, before.value, begin};
      if (is_spare(device))
        reached.host_layers += layers.end - layers.begin;
      else
        reached.value = aim == Aim::kMost ? std::max(before.value, *c) : before.value + *c * *c;
      Best& known = best[k + 1][end];
      if (!known.is_possible || std::tie(reached.host_layers, reached.value) < std::tie(known.host_layers, known.value))
        known = reached;
    }
  }

  int64_t n_layers_;
  std::span<const DeviceBudget> devices_;
  bool host_is_spare_ = false;
};

Placement place(const Ends& ends, std::span<const DeviceBudget> devices, const Workload& work) {
  std::vector<Stage> stages;
  for (size_t k = 0; k < ends.size(); ++k)
    if (const int64_t begin = stages.empty() ? 0 : stages.back().end; begin < ends[k])
      stages.push_back({devices[k].device, begin, ends[k], devices[k].rank});
  Placement placement(std::move(stages), work.dtype);
  placement.set_solve_on(work.solve_on == SolveOn::kHost ? SolveOn::kHost : SolveOn::kDevice);
  return placement;
}

/// Whether the placement allows the requested launch of steps: graphs need everything that a step runs on one GPU.
bool suits_launch(const Workload& work, const Placement& placement) {
  return !work.optimizes_values || work.step_launch != LaunchMode::kGraph ||
         graph_problem(placement, work.steps_from).empty();
}

int64_t budget_of(std::span<const DeviceBudget> devices, const Stage& stage) {
  const auto at = std::find_if(devices.begin(), devices.end(),
                               [&](const DeviceBudget& d) { return d.device == stage.device && d.rank == stage.rank; });
  return at->bytes;
}

int64_t batches_under_way(const Workload& work, const Placement& placement) {
  return placement.is_host_only() ? work.host_threads : placement.batches_under_way();
}

/// Returns how much of the host may be used if no stage is there.
std::optional<int64_t> host_budget(const Workload& work, const DeviceChoice& choice, const Placement& placement) {
  const auto is_host = [](const auto& part) { return part.device == Placement::host(); };
  if (work.solve_on != SolveOn::kHost || std::ranges::any_of(placement.stages(), is_host)) return std::nullopt;
  const auto named = std::ranges::find_if(choice.devices, is_host);
  return named != choice.devices.end() ? named->bytes : choice.host_bytes;
}

/// Plans with the solves where the work says; on devices if it says kAuto.
JobPlan plan_stages(const ModelConfig& config, const Workload& work, const DeviceChoice& choice, Balance balance) {
  const std::vector<DeviceBudget>& devices = choice.devices;
  if (devices.empty()) throw PlacementError("run.devices: no device to place the model on");
  const auto n_devices = static_cast<int64_t>(devices.size());
  const bool host_only = n_devices == 1 && devices[0].is_host();
  const int64_t asked = work.value_batch > 0 ? std::min(work.value_batch, work.together()) : 1;
  const Batching least{std::max<int64_t>(1, asked), host_only ? work.host_threads : n_devices};
  std::map<std::tuple<at::DeviceType, int64_t, int64_t>, int64_t> totals;  // devices of one type need the same memory
  const auto share = [&](const DeviceBudget& device, LayerRange layers) {
    const auto [at, is_new] = totals.try_emplace({device.device.type(), layers.begin, layers.end}, 0);
    if (is_new) at->second = estimate_stage(config, work, {device.device, layers.begin, layers.end}, least).total();
    return static_cast<double>(at->second) / static_cast<double>(std::max<int64_t>(1, device.bytes));
  };
  const auto by_memory = [&](const DeviceBudget& device, LayerRange layers) {
    return std::optional(share(device, layers));
  };
  const auto fitting = [&](const DeviceBudget& device, LayerRange layers) -> std::optional<double> {
    const double used = share(device, layers);
    if (used > 1) return std::nullopt;
    return balance == Balance::kMemory ? used : estimate_time(config, work, layers) / device.speed;
  };
  std::optional<Ends> ends = SplitSearch(config.n_layers, devices, HostUse::kSpare).run(fitting);
  // a plan that is refused is shown with the most even split
  if (!ends) ends = SplitSearch(config.n_layers, devices, HostUse::kLikeOthers).run(by_memory);
  JobPlan plan{.placement = place(*ends, devices, work), .stages = {}, .idle = {}};
  Placement& placement = plan.placement;
  for (size_t k = 0; k < devices.size(); ++k)
    if ((*ends)[k] == (k == 0 ? 0 : (*ends)[k - 1])) plan.idle.push_back(name_of(devices[k].device, devices[k].rank));
  const auto estimate_stages = [&](Batching batching) {
    std::vector<StageEstimate> stages;
    for (const Stage& stage : placement.stages()) {
      stages.push_back(estimate_stage(config, work, stage, batching));
      stages.back().budget = budget_of(devices, stage);
    }
    return stages;
  };
  std::vector<StageEstimate> fixed = estimate_stages(least);
  placement.set_room(room_for_work(fixed));
  int64_t most_requests = 1;
  if (work.optimizes_values) {
    const ValueWork values{config, work.dtype, work.value_layer(), work.values};
    const int64_t step = work.values.step_tokens();
    const int64_t under_way = batches_under_way(work, placement);
    const int64_t share_tokens = (work.together() + under_way - 1) / under_way * step;
    const int64_t tokens = value_step_tokens(values, placement, share_tokens);
    most_requests = std::max<int64_t>(1, tokens / step);
    plan.value_requests = work.value_batch > 0 ? asked : std::clamp<int64_t>(tokens / step, 1, work.together());
  }
  const Batching batching{std::max<int64_t>(1, plan.value_requests), batches_under_way(work, placement)};
  plan.stages = estimate_stages(batching);
  if (const std::optional<int64_t> budget = host_budget(work, choice, placement)) {
    plan.host = estimate_stage(config, work, {Placement::host(), 0, 0}, batching);
    plan.host->budget = *budget;
  }
  plan_kept(config, work, choice,
            estimate_stages({std::max(batching.value_requests, most_requests), batching.under_way}), plan);
  for (size_t i = 0; i < fixed.size(); ++i) fixed[i].kept = plan.stages[i].kept;
  placement.set_room(room_for_work(fixed));
  Workload counted = work;
  counted.statistics_chunk = statistics_chunk_tokens(config, placement, work.statistics_layers);
  for (StageEstimate& part : plan.stages)
    part.statistics = estimate_stage(config, counted, part.stage, batching).statistics;
  return plan;
}

/// Plans with as many of the first devices as the choice says.
JobPlan plan_devices(const ModelConfig& config, const Workload& work, const DeviceChoice& choice, Balance balance) {
  if (choice.first_if_enough && choice.devices.size() > 1) {
    DeviceChoice alone = choice;
    alone.devices.resize(1, choice.devices.front());
    JobPlan first = plan_stages(config, work, alone, balance);
    if (first.fits()) return first;
  }
  return plan_stages(config, work, choice, balance);
}

int64_t layers_on_host(const JobPlan& plan) {
  int64_t layers = 0;
  for (const Stage& stage : plan.placement.stages())
    if (stage.device == Placement::host()) layers += stage.layers();
  return layers;
}

/// Only this function decides where solves are.
JobPlan plan_solves(const ModelConfig& config, const Workload& work, const DeviceChoice& choice, Balance balance) {
  JobPlan plan = plan_devices(config, work, choice, balance);
  const bool has_solves = !work.edited_layers.empty() || !work.statistics_layers.empty();
  if (work.solve_on != SolveOn::kAuto || !has_solves) return plan;
  if (plan.placement.is_host_only() || (plan.fits() && layers_on_host(plan) == 0)) return plan;
  Workload on_host = work;
  on_host.solve_on = SolveOn::kHost;
  JobPlan other = plan_devices(config, on_host, choice, balance);
  // if both plans are refused, the one that comes nearer to the available memory is shown
  const bool is_better = !plan.fits() || layers_on_host(other) < layers_on_host(plan);
  return is_better && (other.fits() || !plan.fits()) ? other : plan;
}

/// Returns an empty text if this would not help.
std::string remedy_of_layers_on_host(const ModelConfig& config, const Workload& work, const DeviceChoice& choice,
                                     Balance balance) {
  std::vector<DeviceBudget> with_host;
  for (const DeviceBudget& device : choice.devices)
    if (!device.is_host()) with_host.push_back(device);
  if (with_host.empty()) return "";
  with_host.push_back({Placement::host(), choice.host_bytes});
  const JobPlan plan = plan_solves(config, work, {std::move(with_host), false, choice.host_bytes}, balance);
  if (layers_on_host(plan) == 0 || !plan.fits() || !suits_launch(work, plan.placement)) return "";
  const StageEstimate& host = plan.stages.back();
  return cat("layers on the CPU: cpu at the end of run.devices (layers ", host.stage.begin, "-", host.stage.end - 1,
             ", ", size_text(host.total()), " of host memory)");
}

std::vector<std::string> find_remedies(const ModelConfig& config, const Workload& work, const DeviceChoice& choice,
                                       Balance balance) {
  std::vector<std::string> remedies;
  const std::vector<DeviceBudget>& devices = choice.devices;
  const auto fits = [&](const Workload& changed, std::vector<DeviceBudget> on) {
    const JobPlan plan = plan_solves(config, changed, {std::move(on), false, choice.host_bytes}, balance);
    return plan.fits() && suits_launch(changed, plan.placement);
  };
  Workload changed = work;
  changed.solve_on = SolveOn::kHost;
  if (work.solve_on == SolveOn::kDevice && fits(changed, devices)) remedies.emplace_back("run.solve_on: host");
  changed = work;
  for (int64_t batch = work.value_batch / 2; batch >= 1; batch /= 2) {
    changed.value_batch = batch;
    if (!fits(changed, devices)) continue;
    remedies.push_back(cat("editor.values.batch: ", batch, " instead of ", work.value_batch, ", or 0 (by memory)"));
    break;
  }
  changed = work;
  for (int64_t batch = work.backward ? work.backward->batch / 2 : 0; batch >= 1; batch /= 2) {
    changed.backward->batch = batch;
    if (!fits(changed, devices)) continue;
    const char* key = work.optimizes_values ? "editor.repair.batch: " : "editor.batch: ";
    remedies.push_back(cat(key, batch, " instead of ", work.backward->batch));
    break;
  }
  changed = work;
  for (int64_t tokens = work.document_tokens / 2; tokens >= 64; tokens /= 2) {
    changed.document_tokens = tokens;
    if (!fits(changed, devices)) continue;
    remedies.push_back(cat("statistics.document_tokens: ", tokens, " instead of ", work.document_tokens));
    break;
  }
  changed = work;
  changed.dtype = at::kBFloat16;
  if (c10::elementSize(work.dtype) > 2 && fits(changed, devices)) remedies.emplace_back("run.dtype: bf16");
  if (!work.quantise_rule.quantiser) {
    changed = work;
    for (const Quantiser quantiser : {Quantiser::kInt8, Quantiser::kNf4}) {
      changed.quantise_rule.quantiser = quantiser;
      if (!fits(changed, devices)) continue;
      remedies.push_back(cat("run.quantise_base: ", quantiser_name(quantiser)));
      break;
    }
  }
  // tries more devices like the last accelerator, and the CPU
  std::vector<DeviceBudget> more(devices.begin(), devices.end());
  const auto last = std::find_if(more.rbegin(), more.rend(), [](const DeviceBudget& d) { return !d.is_host(); });
  if (last != more.rend()) {
    const DeviceBudget same = *last;
    const int64_t most = std::min<int64_t>(63, config.n_layers - static_cast<int64_t>(devices.size()));
    for (int64_t n = 1; n <= most; ++n) more.push_back({Placement::like(same.device, 64 + n), same.bytes, same.speed});
    const auto fit_with = [&](int64_t n) {
      return fits(work, {more.begin(), more.begin() + static_cast<std::ptrdiff_t>(devices.size()) + n});
    };
    int64_t too_few = 0, enough = most;
    if (most > 0 && fit_with(most)) {
      while (enough - too_few > 1) (fit_with((too_few + enough) / 2) ? enough : too_few) = (too_few + enough) / 2;
      remedies.push_back(cat("more devices: ", enough, " more of ", size_text(same.bytes)));
    }
  }
  const std::string on_host = remedy_of_layers_on_host(config, work, choice, balance);
  if (!on_host.empty()) remedies.push_back(on_host);
  return remedies;
}

}  // namespace

bool JobPlan::fits() const {
  return std::ranges::all_of(parts(), [](const StageEstimate& s) { return s.total() <= s.budget; });
}

std::vector<StageEstimate> JobPlan::parts() const {
  std::vector<StageEstimate> parts = stages;
  if (host) parts.push_back(*host);
  return parts;
}

JobPlan choose_plan(const ModelConfig& config, const Workload& work, const DeviceChoice& choice, Balance balance) {
  JobPlan plan = plan_solves(config, work, choice, balance);
  if (work.optimizes_values && work.step_launch == LaunchMode::kGraph)
    check_step_graphs(config, plan.placement, work.steps_from);
  return plan;
}

std::string refusal_text(const ModelConfig& config, const Workload& work, const DeviceChoice& choice, Balance balance) {
  const JobPlan plan = plan_solves(config, work, choice, balance);
  std::vector<std::string> lines{"the job does not fit on the devices:"};
  for (const StageEstimate& stage : plan.parts()) {
    const bool fits = stage.total() <= stage.budget;
    const bool has_layers = stage.stage.layers() > 0;
    const std::string budget = stage.budget >= DeviceBudget::kUnknown ? "what there is" : size_text(stage.budget);
    lines.push_back(cat("  ", name_of(stage.stage.device, stage.stage.rank), ", ",
                        has_layers ? cat("layers ", stage.stage.begin, "-", stage.stage.end - 1) : "solves", ": ",
                        size_text(stage.total()), " of ", budget, fits ? "" : ": too much", " (weights ",
                        size_text(stage.weights),
                        stage.unpacked > 0 ? cat(", unpacked at a time ", size_text(stage.unpacked)) : "",
                        ", edited weights ", size_text(stage.edited), ", evaluation ", size_text(stage.evaluate),
                        ", values ", size_text(stage.value_activations + stage.value_prefix),
                        stage.training > 0 ? cat(", training ", size_text(stage.training)) : "", ", statistics ",
                        size_text(stage.statistics), ", solve ", size_text(stage.solve), ")"));
  }
  const std::vector<std::string> remedies = find_remedies(config, work, choice, balance);
  lines.emplace_back(remedies.empty()
                         ? "No single change that lancet knows of makes it fit: a smaller model, or larger "
                           "devices."
                         : "What would make it fit, each by itself:");
  for (const std::string& remedy : remedies) lines.push_back("  " + remedy);
  return join(lines, "\n");
}

JobPlan plan_job(const ModelConfig& config, const Workload& work, const DeviceChoice& choice, Balance balance) {
  JobPlan plan = choose_plan(config, work, choice, balance);
  if (!plan.fits()) throw PlacementError(refusal_text(config, work, choice, balance));
  return plan;
}

}  // namespace lancet
