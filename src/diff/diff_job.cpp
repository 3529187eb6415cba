#include "lancet/diff/diff_job.h"

#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/deltas/adapter.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "lancet/plan/model_session.h"
#include "lancet/runtime/devices.h"
#include "weight_pairs.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDiffRecord = "diff.json";
constexpr OutputKind kDiffOutput{"diff"};

/// Returns the first level of config.json, by name.
std::map<std::string, std::string> keys_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> keys;
  try {
    const nlohmann::json config = parse_strict_json(checkpoint.config_text());
    for (const auto& [key, value] : config.items()) keys[key] = value.dump();
  } catch (const JsonProblem& problem) {
    throw CheckpointError(cat((checkpoint.folder() / "config.json").string(), ": ", problem.what(),
                              ": the file is damaged, download it again"));
  }
  return keys;
}

std::vector<DifferentKey> different_keys(const Checkpoint& before, const Checkpoint& after) {
  std::map<std::string, DifferentKey> keys;
  for (const auto& [key, value] : keys_of(before)) keys[key].before = value;
  for (const auto& [key, value] : keys_of(after)) keys[key].after = value;
  std::vector<DifferentKey> different;
  for (auto& [name, key] : keys) {
    if (key.before == key.after) continue;
    key.key = name;
    different.push_back(key);
  }
  return different;
}

/// Returns the texts of the files beside the weights, by name, except files that are compared in another way.
std::map<std::string, std::string> side_files(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> files;
  for (const auto& file : checkpoint.side_files()) {
    const std::string name = file->path().filename().string();
    if (name != "config.json" && !name.ends_with(".index.json")) files[name] = file->text();
  }
  return files;
}

std::vector<DifferentFile> different_files(const Checkpoint& before, const Checkpoint& after) {
  const auto old_files = side_files(before), new_files = side_files(after);
  std::vector<DifferentFile> different;
  for (const auto& [name, text] : old_files) {
    const auto found = new_files.find(name);
    if (found == new_files.end())
      different.push_back({name, FileDifference::kOnlyBefore});
    else if (found->second != text)
      different.push_back({name, FileDifference::kOther});
  }
  for (const auto& [name, text] : new_files)
    if (!old_files.contains(name)) different.push_back({name, FileDifference::kOnlyAfter});
  return different;
}

/// Returns an expert's factors as a change of the weight of all experts, with zeros for the others.
LowRankDelta in_whole_weight(const ModelConfig& config, const DifferentWeight& weight, const LowRankDelta& own) {
  const WeightSpec whole = weight_spec(config, weight.id);
  if (whole.stored.tensors.size() == 1) return own;
  const bool by_rows = whole.parts_axis() == 0;
  const Tensor& narrow = by_rows ? own.left_OR : own.right_RI;
  const int64_t axis = by_rows ? 0 : 1, size = narrow.size(axis);
  std::vector<int64_t> shape = narrow.sizes().vec();
  shape[static_cast<size_t>(axis)] = whole.shape[static_cast<size_t>(axis)];
  Tensor wide = torch::zeros(shape, narrow.options());
  wide.narrow(axis, weight.expert * size, size).copy_(narrow);
  return by_rows ? LowRankDelta{wide, own.right_RI} : LowRankDelta{own.left_OR, wide};
}

class DiffRun {
 public:
  explicit DiffRun(const DiffJob& job) : job_(job) {}

  DiffReport run() {
    const auto begun = std::chrono::steady_clock::now();
    if (!writes()) {
      compare();
      report_.seconds = seconds_since(begun);
      return std::move(report_);
    }
    check_folder();
    open();
    OutputLock lock(job_.out, kDiffOutput);
    check_folder();  // again: meanwhile another run may have ended, or a killed run's output may have been repaired
    OutputFolder folder(job_.out, job_.if_exists, kDiffOutput);
    compare();
    write(folder.staging());
    report_.seconds = seconds_since(begun);
    write_text_file(folder.staging() / kDiffRecord, to_json(report_, job_));
    folder.commit();
    return std::move(report_);
  }

 private:
  static double seconds_since(std::chrono::steady_clock::time_point begun) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  }

  bool writes() const { return !job_.out.empty(); }

  void check_folder() const { check_new_output(job_.out, job_.if_exists, kDiffOutput); }

  void open() {
    if (before_) return;
    before_.emplace(job_.before);
    after_.emplace(job_.after);
    if (before_->config().family != after_->config().family)
      throw ConfigError(cat(job_.after.string(), ": expected a model of the family of ", job_.before.string(), ", ",
                            before_->config().family->name, ", got ", after_->config().family->name,
                            "; compare two models of one architecture"));
    if (writes())
      for (const auto* model : {&*before_, &*after_}) check_apart(job_.out, model->checkpoint().folder());
  }

  void compare() {
    open();
    set_threads(job_.run);
    device_ = find_devices(job_.run.devices, job_.run.on_host).devices.front().device;
    report_.device = device_->str();
    report_.config = different_keys(before_->checkpoint(), after_->checkpoint());
    report_.files = different_files(before_->checkpoint(), after_->checkpoint());
    compare_names();
    const torch::NoGradGuard no_grad;
    Progress progress("compare", static_cast<int64_t>(before_->weights().size()), "weights");
    std::map<WeightId, size_t> experts;
    for (const WeightSpec& weight : before_->weights()) {
      const size_t expert = experts[weight.id]++;
      if (const WeightSpec* other = after_->find(weight.id, expert)) compare_weight(weight, *other, expert);
      progress.advance();
    }
  }

  void compare_names() {
    std::map<WeightId, size_t> old_experts, new_experts;
    for (const WeightSpec& weight : before_->weights())
      if (after_->find(weight.id, old_experts[weight.id]++) == nullptr) report_.only_before.push_back(weight.name);
    for (const WeightSpec& weight : after_->weights())
      if (before_->find(weight.id, new_experts[weight.id]++) == nullptr) report_.only_after.push_back(weight.name);
    const std::vector<std::string> old_tensors = before_->other_tensors(), new_tensors = after_->other_tensors();
    std::ranges::set_difference(old_tensors, new_tensors, std::back_inserter(report_.only_before));
    std::ranges::set_difference(new_tensors, old_tensors, std::back_inserter(report_.only_after));
  }

  void compare_weight(const WeightSpec& before, const WeightSpec& after, size_t expert) {
    if (before.shape != after.shape) {
      report_.other_shapes.push_back({before.name, before.shape, after.shape});
      return;
    }
    if (before_->content(before) == after_->content(after)) {
      ++report_.equal_bytes;
      return;
    }
    const Tensor old_numbers = before_->read(before, *device_), new_numbers = after_->read(after, *device_);
    DifferentWeight weight{.name = before.name,
                           .id = before.id,
                           .expert = static_cast<int64_t>(expert),
                           .shape = before.shape,
                           .type_before = before_->type_name(before),
                           .type_after = after_->type_name(after),
                           .size = change_size(old_numbers, new_numbers)};
    if (weight.size.changed == 0) {
      ++report_.equal_numbers;
      return;
    }
    if (before.shape.size() == 2) {
      std::optional<at::ScalarType> rounded_to;
      if (after.packed.empty()) rounded_to = new_numbers.scalar_type();
      weight.spectrum = change_spectrum(old_numbers, new_numbers, rounded_to);
    }
    keep_factors(weight);
    report_.different.push_back(std::move(weight));
  }

  /// Keeps only the directions that are written, to save memory.
  void keep_factors(DifferentWeight& weight) {
    weight.lost_norm = weight.size.norm;
    weight.left_out = why_not_in_adapter(before_->config(), weight.id);
    if (weight.spectrum && weight.left_out.empty() && weight.spectrum->rank == 0)
      weight.left_out = "nothing of its change stands out of the noise";
    if (!weight.spectrum) return;
    LowRankDelta& factors = weight.spectrum->factors;
    if (!writes() || !weight.left_out.empty()) {
      factors = {};
      return;
    }
    weight.written = std::min(weight.spectrum->rank, job_.largest_rank);
    weight.lost_norm = weight.spectrum->norm_beyond(weight.written);
    factors = {factors.left_OR.slice(1, 0, weight.written).to(Placement::host()).contiguous(),
               factors.right_RI.slice(0, 0, weight.written).to(Placement::host()).contiguous()};
  }

  void write(const fs::path& folder) {
    std::map<WeightId, std::vector<WeightDelta>> deltas;
    for (DifferentWeight& weight : report_.different) {
      if (weight.written == 0) continue;
      deltas[weight.id].emplace_back(in_whole_weight(before_->config(), weight, weight.spectrum->factors));
      weight.spectrum->factors = {};
    }
    if (deltas.empty())
      throw ConfigError(cat("--out ", job_.out.string(), ": expected differences that an adapter can have, got ",
                            report_.different.empty() ? "none" : "others", "; leave --out away to see what differs"));
    std::vector<WeightChanges> changes;
    for (auto& [id, all] : deltas) changes.push_back({id, std::move(all)});
    const AdapterReport adapter = write_adapter(folder, before_->config(), changes,
                                                {.base_model = job_.before.string(), .excess = ExcessRank::kTruncate});
    report_.adapter = {adapter.rank, adapter.modules.size(), adapter.file_bytes};
    for (const AdapterModule& module : adapter.modules)
      for (DifferentWeight& weight : report_.different)
        if (weight.written > 0 && is_part_of(weight, module)) weight.lost_norm += module.lost_norm;
  }

  bool is_part_of(const DifferentWeight& weight, const AdapterModule& module) const {
    if (std::ranges::find(module.weights, weight.id) == module.weights.end()) return false;
    const WeightSpec whole = weight_spec(before_->config(), weight.id);
    return whole.stored.tensors.size() == 1 ||
           whole.stored.tensors[static_cast<size_t>(weight.expert)].starts_with(module.name);
  }

  const DiffJob& job_;
  std::optional<ComparedModel> before_, after_;
  std::optional<at::Device> device_;
  DiffReport report_;
};

}  // namespace

std::string file_difference_name(FileDifference difference) {
  switch (difference) {
    case FileDifference::kOther:
      return "other";
    case FileDifference::kOnlyBefore:
      return "only_before";
    case FileDifference::kOnlyAfter:
      return "only_after";
  }
  throw std::logic_error("no such difference");
}

DiffReport run_diff_job(const DiffJob& job) { return DiffRun(job).run(); }

}  // namespace lancet
