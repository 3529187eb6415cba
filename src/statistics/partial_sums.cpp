#include "lancet/statistics/partial_sums.h"

#include <torch/types.h>

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"
#include "matrix_file.h"

namespace lancet {
namespace {

/// Raised when the format or the meaning of the file changes.
constexpr SealedFormat kPartialSums{"lancet-partial-sums-2"};
constexpr std::string_view kSuffix = ".partial.safetensors";
/// A save that took s seconds is followed by at least this many times s without one.
constexpr double kWorkPerSave = 20;

std::string sum_name(int64_t index) { return cat("sum.", index); }

int64_t number(const SealedFile& file, const std::string& fact) {
  const std::optional<int64_t> value = parse_whole_number(file.fact(fact));
  if (!value) throw CheckpointError(cat(fact, ": '", file.fact(fact), "': not a number"));
  return *value;
}

/// Names of all passes' sums; none where the folder cannot be listed: they are then not found, and stay.
std::vector<std::string> saved_sums(const std::filesystem::path& folder) {
  try {
    std::vector<std::string> names = folder_names(folder);
    std::erase_if(names, [](const std::string& name) { return !name.ends_with(kSuffix); });
    return names;
  } catch (const Error&) {
    return {};
  }
}

/// Throws: CheckpointError saying what is wrong with it.
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
    std::error_code error;  // a file that goes away: not saved
    const auto written = std::filesystem::last_write_time(folder / name, error);
    return !error && written >= time;
  });
}

void PartialSums::remove_all(const std::filesystem::path& folder, const std::string& key) {
  std::error_code ignored;  // a file that stays is another run's waste of space, not a failure of this one
  for (const std::string& name : saved_sums(folder))
    if (name.starts_with(key + ".")) std::filesystem::remove(folder / name, ignored);
}

}  // namespace lancet
