#include "lancet/statistics/partial_sums.h"

#include <torch/types.h>
#include <algorithm>
#include <cmath>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/finite.h"
#include "lancet/models/tensor_io.h"
#include "matrix_file.h"
#include "moment_sums.h"

namespace lancet {
namespace {

/// Increase the number when the format or the meaning of the file changes.
constexpr SealedFormat kPartialSums{"lancet-partial-sums-2"};
constexpr std::string_view kSuffix = ".partial.safetensors";
/// After a save that took s seconds, there is no other save for at least this many times s.
constexpr double kWorkPerSave = 20;

std::string sum_name(int64_t index) { return cat("sum.", index); }

int64_t number(const SealedFile& file, const std::string& fact) {
  const std::optional<int64_t> value = parse_whole_number(file.fact(fact));
  if (!value) throw CheckpointError(cat(fact, ": '", file.fact(fact), "': not a number"));
  return *value;
}

/// Returns the names of the sums of all passes. If the folder cannot be listed there are none: the files are not found,
/// and stay.
std::vector<std::string> saved_sums(const std::filesystem::path& folder) {
  try {
    std::vector<std::string> names = folder_names(folder);
    std::erase_if(names, [](const std::string& name) { return !name.ends_with(kSuffix); });
    return names;
  } catch (const Error&) {
    return {};
  }
}

/// Throws: CheckpointError that says what is wrong with the file.
SavedPass read_pass(const std::filesystem::path& file, const std::string& key, std::span<const KeyShape> layers) {
  const SealedFile saved = SealedFile::open(file, kPartialSums);
  if (saved.fact("key") != key) throw CheckpointError("written by another pass");
  SavedPass pass{number(saved, "chunks"), number(saved, "tokens"), {}};
  NamedTensors sums = load_tensors(saved);
  if (sums.size() != layers.size()) throw CheckpointError(cat(sums.size(), " layers, expected ", layers.size()));
  for (const auto& [name, sum_FF] : sums) {
    const std::vector<int64_t> expected = moment_sizes(layers[pass.sums_FF.size()]);
    if (name != sum_name(static_cast<int64_t>(pass.sums_FF.size())) || sum_FF.scalar_type() != at::kDouble ||
        sum_FF.sizes() != expected)
      throw CheckpointError(cat(name, ": ", at::toString(sum_FF.scalar_type()), " ", shape_text(sum_FF.sizes()),
                                ", expected Double ", shape_text(expected)));
    pass.sums_FF.push_back(sum_FF);
  }
  return pass;
}

}  // namespace

PartialSums::PartialSums(const std::filesystem::path& folder, std::string key, double save_every_s)
    : file_(folder / (key + std::string(kSuffix))), key_(std::move(key)), save_every_s_(save_every_s) {}

std::optional<SavedPass> PartialSums::load(std::span<const KeyShape> layers) const {
  if (!std::filesystem::exists(file_)) return std::nullopt;
  try {
    return read_pass(file_, key_, layers);
  } catch (const CheckpointError& error) {
    log_warning(cat("statistics: ", file_.string(), ": saved sums that cannot be used, the pass starts from the ",
                    "beginning: ", error.what()));
    return std::nullopt;
  }
}

bool PartialSums::due() const {
  if (refused_) return false;
  const double wait_s = save_every_s_ > 0 ? std::max(save_every_s_, kWorkPerSave * last_save_took_s_) : 0;
  return std::chrono::duration<double>(Clock::now() - last_saved_).count() >= wait_s;
}

void PartialSums::save(const SavedPass& pass) {
  const Clock::time_point begin = Clock::now();
  NamedTensors sums;
  for (const Tensor& sum_FF : pass.sums_FF) sums.emplace_back(sum_name(static_cast<int64_t>(sums.size())), sum_FF);
  try {
    std::filesystem::create_directories(file_.parent_path());
    write_tensors(file_, kPartialSums, sums,
                  {{"key", key_}, {"chunks", std::to_string(pass.chunks)}, {"tokens", std::to_string(pass.tokens)}});
  } catch (const std::exception& error) {
    refused_ = true;
    log_warning(cat("statistics: the pass goes on, but cannot be continued if it is stopped: ", error.what()));
  }
  last_saved_ = Clock::now();
  last_save_took_s_ = std::chrono::duration<double>(last_saved_ - begin).count();
}

bool PartialSums::are_saved_since(const std::filesystem::path& folder, std::filesystem::file_time_type time) {
  return std::ranges::any_of(saved_sums(folder), [&](const std::string& name) {
    std::error_code error;  // a file that another run just removed does not count
    const auto written = std::filesystem::last_write_time(folder / name, error);
    return !error && written >= time;
  });
}

void PartialSums::remove_all(const std::filesystem::path& folder, const std::string& key) {
  std::error_code ignored;  // a file that cannot be removed only wastes space
  for (const std::string& name : saved_sums(folder))
    if (name.starts_with(key + ".")) std::filesystem::remove(folder / name, ignored);
}

namespace {

/// Stacks matrices. A single matrix is not copied.
Tensor together(const std::vector<Tensor>& blocks) {
  return blocks.size() == 1 ? blocks.front() : torch::stack(blocks);
}

}  // namespace

KeyShape moment_shape(const ModelConfig& config, MomentSide side, int64_t layer) {
  return side == MomentSide::kKeys ? config.key_shape(layer) : KeyShape{.width = config.d_model};
}

LayerSums::LayerSums(KeyShape rows, const Placement& placement, int64_t layer) {
  for (int64_t expert = 0; expert < rows.experts; ++expert)
    sums_.emplace_back(rows.width, placement.device_of(layer), placement.solve_device(layer));
}

void LayerSums::add(const Tensor& rows_NF, RowCounts& counts) {
  const std::vector<Tensor> parts = rows_NF.chunk(std::ssize(sums_), 1);
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i].add(parts[i], counts);
}

Tensor LayerSums::panels() const {
  std::vector<Tensor> blocks;
  for (const GramAccumulator& sum : sums_) blocks.push_back(sum.panels());
  return together(blocks);
}

void LayerSums::restore(const Tensor& panels, int64_t rows) {
  if (sums_.size() == 1) return sums_.front().restore(panels, rows);
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i].restore(panels[static_cast<int64_t>(i)].clone(), rows);
}

void LayerSums::sum_over(Communicator& communicator) {
  for (GramAccumulator& sum : sums_) sum.sum_over(communicator);
}

Tensor LayerSums::take_mean() && {
  std::vector<Tensor> blocks;
  for (GramAccumulator& sum : sums_) blocks.push_back(std::move(sum).take_mean());
  return together(blocks);
}

MomentSums::MomentSums(const CausalLM& model, MomentSide side, std::span<const int64_t> layers)
    : model_(model), side_(side), layers_(layers.begin(), layers.end()) {
  for (const int64_t layer : layers)
    sums_.emplace_back(moment_shape(model.config(), side, layer), model.placement(), layer);
}

SavedPass MomentSums::after(int64_t chunks) const {
  SavedPass pass{chunks, sums_.front().rows(), {}};
  for (const LayerSums& sum : sums_) pass.sums_FF.push_back(sum.panels());
  return pass;
}

int64_t MomentSums::go_on_from(const PartialSums* saves, int64_t tokens, Progress& progress) {
  if (saves == nullptr) return 0;
  std::vector<KeyShape> shapes;
  for (const int64_t layer : layers_) shapes.push_back(moment_shape(model_.config(), side_, layer));
  const std::optional<SavedPass> saved = saves->load(shapes);
  if (!saved) return 0;
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i].restore(saved->sums_FF[i], saved->tokens);
  progress.expect_pieces(-saved->chunks);
  progress.skip(saved->tokens);
  log_line(
      cat("statistics: going on from ", saved->tokens, " of ", tokens, " tokens saved in ", saves->file().string()));
  return saved->chunks;
}

void MomentSums::sum_over(Communicator& communicator) {
  for (LayerSums& sum : sums_) sum.sum_over(communicator);
}

std::vector<Covariance> MomentSums::take() && {
  std::vector<Covariance> moments;
  for (size_t i = 0; i < sums_.size(); ++i) {
    const int64_t tokens = sums_[i].rows();
    moments.push_back({std::move(sums_[i]).take_mean(), tokens});
    // a number that is not finite shows up on the diagonal
    if (const double trace = moments.back().moment_FF.diagonal(0, -2, -1).sum().item<double>(); !std::isfinite(trace))
      throw not_finite(model_,
                       cat("statistics of layer ", layers_[i], ": the trace of the ",
                           side_ == MomentSide::kKeys ? "covariance" : "gradients' moments", " is ", trace),
                       wider_dtype(model_));
  }
  return moments;
}

}  // namespace lancet
