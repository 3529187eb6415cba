#include "file_times.h"

#include <torch/types.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "lancet/checkpoint/checkpoint_export.h"
#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"
#include "lancet/plan/model_session.h"
#include "lancet/runtime/devices.h"
#include "machine.h"

namespace lancet::bench {
namespace {

constexpr int64_t kEditedLayers = 5;

/// RssAnon of this process: memory that no file backs.
int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return 1024 * std::stoll(line.substr(8));
  return 0;
}

/// The most that anonymous memory grew by while this lived, looked at every few milliseconds.
class AnonymousGrowth {
 public:
  AnonymousGrowth() : begin_(anonymous_bytes()), watch_([this] { look(); }) {}
  ~AnonymousGrowth() { stop(); }
  AnonymousGrowth(const AnonymousGrowth&) = delete;
  AnonymousGrowth& operator=(const AnonymousGrowth&) = delete;

  int64_t stop() {
    stopped_ = true;
    if (watch_.joinable()) watch_.join();
    return std::max(most_, anonymous_bytes()) - begin_;
  }

 private:
  void look() {
    while (!stopped_) {
      most_ = std::max(most_, anonymous_bytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  int64_t begin_;
  int64_t most_ = 0;
  std::atomic<bool> stopped_{false};
  std::thread watch_;
};

/// Sum of the tensor's bytes as 64-bit numbers, modulo 2^64; the last one filled up with zeros.
uint64_t word_sum(const Tensor& tensor) {
  Tensor bytes = tensor.reshape({-1}).view(torch::kByte);
  if (const int64_t rest = bytes.numel() % 8; rest != 0) bytes = torch::cat({bytes, bytes.new_zeros({8 - rest})});
  return static_cast<uint64_t>(bytes.view(torch::kLong).sum().item<int64_t>());
}

/// Sums each tensor's sum times its place, in name order: bench/compare_loading.py does the same.
uint64_t checksum(const CausalLM& model) {
  std::map<std::string, const Tensor*> by_name;
  for (const WeightSpec& spec : weight_table(model.config())) by_name[spec.name] = &model.weight(spec.id);
  uint64_t sum = 0, place = 0;
  for (const auto& [name, tensor] : by_name) sum += ++place * word_sum(*tensor);
  return sum;
}

void export_with_edits(const ModelFiles& files, const CausalLM& model, const std::filesystem::path& folder) {
  std::vector<Tensor> edited;
  std::vector<TensorSource> sources;
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint)) {
    if (spec.id.kind != WeightKind::kDown || spec.id.layer >= kEditedLayers) continue;
    const std::vector<std::string>& names = spec.stored.tensors;
    const at::ScalarType stored = to_scalar_type(files.checkpoint.info(names.front()).dtype);
    const std::vector<Tensor> parts = stored_parts(spec, model.weight(spec.id).to(Placement::host(), stored));
    for (size_t i = 0; i < names.size(); ++i) {
      edited.push_back(parts[i].contiguous());
      sources.push_back(to_source(names[i], edited.back()));
    }
  }
  export_checkpoint(files.checkpoint, {.replaced = sources}, folder);
}

}  // namespace

void run_file_times(const BenchOptions& options) {
  const torch::NoGradGuard no_grad;
  set_threads(options.run);
  const DeviceChoice devices = find_devices(options.run.devices);
  ModelFiles files;
  std::optional<CausalLM> model;
  const auto load = [&] {
    files.checkpoint = Checkpoint::open(options.model);
    files.config = load_model_config(files.checkpoint);
    const at::ScalarType dtype = to_scalar_type(options.run.dtype.value_or(files.config.dtype));
    model = CausalLM::load(files.checkpoint, files.config, even_placement(files.config.n_layers, devices, dtype));
  };
  load();  // a rehearsal: a virtual machine pays its host for free memory that nobody has touched for seconds
  model.reset();
  nlohmann::json line;
  AnonymousGrowth load_growth;
  line["load_s"] = seconds_of(load);
  uint64_t sum = 0;
  line["checksum_s"] = seconds_of([&] { sum = checksum(*model); });
  line["checksum"] = std::to_string(sum);
  line["load_anonymous_bytes"] = load_growth.stop();
  line["bytes"] = files.checkpoint.tensor_bytes();
  if (options.file_times == FileTimes::kLoadAndExport) {
    std::filesystem::create_directory(options.export_to);
    AnonymousGrowth growth;
    line["export_s"] = seconds_of([&] { export_with_edits(files, *model, options.export_to); });
    line["export_anonymous_bytes"] = growth.stop();
  }
  std::cout << line.dump() << "\n";
}

}  // namespace lancet::bench
