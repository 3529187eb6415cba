#include "lancet/statistics/statistics_store.h"

#include <torch/types.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/parallel.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/gram.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/devices.h"
#include "lancet/statistics/gradient_moments.h"
#include "matrix_file.h"

namespace lancet {
namespace {

constexpr MatrixKind kCovariance{{"lancet-covariance-5"}, "upper_rows", "covariance", MatrixShape::kSymmetric};
constexpr MatrixKind kGradients{
    {"lancet-gradient-moments-1"}, "upper_rows", "second moment of gradients", MatrixShape::kSymmetric};

const MatrixKind& kind_of(MomentSide side) { return side == MomentSide::kKeys ? kCovariance : kGradients; }

/// Returns the key of one pass over several layers. `chunk_tokens` is part of it, because it decides the order of the
/// sums.
std::string pass_key(std::span<const std::filesystem::path> cache_files, int64_t chunk_tokens) {
  ContentHash hash;
  hash.add(chunk_tokens);
  for (const std::filesystem::path& file : cache_files) hash.add(file.filename().string());
  return hash.hex();
}

/// Returns the key of one rank's share of a pass: with another number of ranks the shares have other chunks.
std::string share_key(const std::string& pass, const Communicator& communicator) {
  if (communicator.size() == 1) return pass;
  return cat(pass, ".rank-", communicator.rank(), "-of-", communicator.size());
}

/// Collective. Returns the size of chunks for which every rank has enough memory.
int64_t agreed_chunk_tokens(const CausalLM& model, MomentSide side, std::span<const int64_t> layers,
                            Communicator& communicator) {
  if (side == MomentSide::kGradients)
    return gradient_chunk_tokens(model.config(), model.placement().weight_dtype(), layers.front());
  int64_t least = statistics_chunk_tokens(model.config(), model.placement(), layers);
  if (communicator.size() == 1) return least;
  for (const std::vector<int64_t>& tokens : gather_numbers(communicator, {least}))
    least = std::min(least, tokens.front());
  return least;
}

}  // namespace

StatisticsText text_of(const CorpusTokens& corpus) {
  ContentHash hash;
  for (const auto& document : corpus.documents) hash.add(std::as_bytes(std::span(document)));
  if (corpus.only_ends) hash.add("only ends");
  return {hash.hex(), [&corpus](Communicator& communicator) { return broadcast_corpus(communicator, corpus); },
          corpus.tokens};
}

StatisticsStore::StatisticsStore(const CausalLM& model, const Checkpoint& checkpoint, StatisticsText text,
                                 std::filesystem::path cache, MomentSide side)
    : model_(model),
      text_(std::move(text)),
      keys_(text_.content_key, checkpoint, model.config(), model.placement().weight_dtype(), model.quantise_rule()),
      side_(side),
      cache_(std::move(cache)) {}

std::string CovarianceKeys::of(int64_t layer, MomentSide side) const {
  ContentHash hash;
  hash.add(kind_of(side).format.name)
      .add(text_key_)
      .add(checkpoint_.config_text())
      .add(at::toString(dtype_))
      .add(layer);
  for (const WeightSpec& spec : resolve_weights(config_, checkpoint_)) {
    if (side == MomentSide::kKeys && !shapes_keys(config_, spec.id, layer)) continue;
    if (quantise_rule_.quantises(spec)) hash.add(quantise_rule_.key(spec));
    for (const std::string& name : spec.tensor_names()) {
      std::string& weight = (*hashes_)[name];
      if (weight.empty()) {
        ContentHash bytes;
        checkpoint_.view(name).add_to(bytes);
        weight = bytes.hex();
      }
      hash.add(weight);
    }
  }
  return hash.hex();
}

std::filesystem::path StatisticsStore::cache_file(int64_t layer) const {
  return cache_ / (content_key(layer) + ".safetensors");
}

/// Prints what work will be done, before it begins.
void StatisticsStore::tell_work(size_t n_layers) const {
  const std::string text = text_.tokens > 0 ? cat(text_.tokens, " tokens of ", text_.content) : "the text";
  const std::string over =
      text_.making.empty() ? cat("one pass over ", text) : cat(text_.making, ", and one pass over them");
  const std::string how = side_ == MomentSide::kKeys ? "" : ", with backward,";
  log_line(cat("statistics  not in the cache yet: ", over, how, " for ", counted(n_layers, "layer"),
               "; this happens once, later edits find them in ", cache_.string()));
}

void StatisticsStore::prepare(std::span<const int64_t> layers, Communicator& communicator) {
  std::vector<int64_t> missing;
  std::vector<std::filesystem::path> files, all_files;
  std::string pass;
  const int64_t chunk_tokens = agreed_chunk_tokens(model_, side_, layers, communicator);
  communicator.run_collectively("statistics", [&] {
    if (!communicator.is_root()) return;
    for (const int64_t layer : layers) {
      all_files.push_back(cache_file(layer));
      if (has_matrix(all_files.back(), kind_of(side_), shape(layer))) continue;
      missing.push_back(layer);
      files.push_back(all_files.back());
    }
    pass = pass_key(files, chunk_tokens);
    // removes the sums of a killed pass over all these layers: some results are already in the cache, so no run
    // continues it
    if (missing.size() < layers.size()) PartialSums::remove_all(cache_, pass_key(all_files, chunk_tokens));
    if (!missing.empty()) tell_work(missing.size());
  });
  missing = broadcast_numbers(communicator, missing);
  collected_ = {missing.begin(), missing.end()};
  if (missing.empty()) return;
  pass = communicator.broadcast(std::move(pass));
  PartialSums saves(cache_, share_key(pass, communicator), save_every_s_);
  const auto collect = side_ == MomentSide::kKeys ? collect_covariances : collect_gradient_moments;
  const std::vector<Covariance> fresh =
      collect(model_, text_.read(communicator), missing, communicator, {chunk_tokens, &saves});
  communicator.run_collectively("statistics", [&] {
    for (size_t i = 0; i < files.size(); ++i)  // empty except on root
      write_matrix(files[i], kind_of(side_), fresh[i].moment_FF, {{kTokensFact, std::to_string(fresh[i].tokens)}});
  });
  PartialSums::remove_all(cache_, pass);  // only now, because the cache now has the results
}

Covariance StatisticsStore::load(int64_t layer) const {
  const MatrixFile file = MatrixFile::open(cache_file(layer), kind_of(side_), shape(layer));
  return {upload(file.load(), model_.placement().solve_device(layer)), static_cast<int64_t>(file.number(kTokensFact))};
}

namespace {

/// A file's name has a hash of everything that its matrix depends on.
constexpr const char* kNameFact = "name";

template <typename Read>
auto with_remedy(const Read& read) {
  try {
    return read();
  } catch (const CheckpointError& error) {
    throw CheckpointError(cat(error.what(), "; a job that begins to use it makes it again"));
  }
}

/// Returns how many numbers are before row j in a packed triangle of n rows.
int64_t packed_begin(int64_t n, int64_t j) { return j * n - j * (j - 1) / 2; }

std::vector<int64_t> stored_shape(const TensorInfo& info, MatrixShape shape, KeyShape keys) {
  std::vector<int64_t> expected = moment_sizes(keys);
  if (shape != MatrixShape::kWide) {
    expected.pop_back();
    expected.back() = packed_begin(keys.width, keys.width);
  } else if (keys.experts == 1) {
    expected.front() = info.shape.empty() ? 0 : info.shape.front();
  }
  return expected;
}

/// Packs matrices on the host, inside their own memory.
void pack_in_place(double* matrices, int64_t n_matrices, int64_t n) {
  double* to = matrices;
  for (int64_t m = 0; m < n_matrices; ++m)
    for (int64_t i = 0; i < n; to += n - i, ++i)
      std::memmove(to, matrices + (m * n + i) * n + i, static_cast<size_t>(n - i) * sizeof(double));
}

/// Packs matrices [E, n, n] that are on a device or not contiguous: copies some rows at a time to the host.
Tensor pack_staged(const Tensor& matrices_Enn) {
  constexpr int64_t kStagedNumbers = int64_t{8} << 20;
  constexpr size_t kMostThreads = 8;
  const int64_t n = matrices_Enn.size(-1), size = packed_begin(n, n),
                step = std::clamp<int64_t>(kStagedNumbers / n, 1, n);
  const Tensor triangles = torch::empty({matrices_Enn.size(0), size}, torch::TensorOptions(at::kDouble));
  const Tensor staging = torch::empty({step * n}, torch::TensorOptions(at::kDouble));
  for (int64_t m = 0; m < matrices_Enn.size(0); ++m)
    for (int64_t begin = 0; begin < n; begin += step) {
      const int64_t count = std::min(step, n - begin), width = n - begin;
      const Tensor staged = staging.narrow(0, 0, count * width).view({count, width});
      staged.copy_(matrices_Enn[m].narrow(0, begin, count).narrow(1, begin, width));
      for_each_in_parallel(static_cast<size_t>(count), kMostThreads, [&](size_t row) {
        const auto i = static_cast<int64_t>(row);
        std::copy_n(staged.const_data_ptr<double>() + i * (width + 1), width - i,
                    triangles.mutable_data_ptr<double>() + m * size + packed_begin(n, begin + i));
      });
    }
  return triangles;
}

/// Returns the part of each row from the diagonal on, for matrices [n, n] or [E, n, n], on the host: [size] or [E,
/// size].
Tensor packed(const Tensor& rows) {
  const int64_t n = rows.size(-1), size = packed_begin(n, n);
  Tensor triangles = rows.view({-1, n, n});
  const int64_t n_matrices = triangles.size(0);
  if (rows.device() == Placement::host() && rows.is_contiguous()) {
    pack_in_place(rows.mutable_data_ptr<double>(), n_matrices, n);
    triangles = rows.flatten().narrow(0, 0, n_matrices * size).view({n_matrices, size});
  } else {
    triangles = pack_staged(triangles);
  }
  return rows.dim() == 2 ? triangles[0] : triangles;
}

/// Returns zeros whose memory pages are only allocated when they are written to. The pages left of a triangle's
/// diagonal never are.
Tensor lazy_zeros(at::IntArrayRef sizes) {
  void* const memory = std::calloc(static_cast<size_t>(c10::multiply_integers(sizes)), sizeof(double));
  if (memory == nullptr) throw std::bad_alloc();
  return torch::from_blob(
      memory, sizes, [](void* owned) { std::free(owned); }, torch::TensorOptions(at::kDouble));
}

/// Copies a piece of packed triangles to its place in `rows` (matrices [n, n] one after another), right of the
/// diagonals.
void unpack(const SealedFile::Piece& piece, int64_t n, double* rows) {
  const auto* from = reinterpret_cast<const double*>(piece.bytes.data());
  const int64_t size = packed_begin(n, n);
  auto place = static_cast<int64_t>(piece.offset / sizeof(double));
  const int64_t end = place + static_cast<int64_t>(piece.bytes.size() / sizeof(double));
  while (place < end) {
    const int64_t matrix = place / size, at = place % size;
    // finds the last row that begins at or before `at`
    int64_t j = 0;
    for (int64_t step = int64_t{1} << 40; step > 0; step /= 2)
      if (j + step < n && packed_begin(n, j + step) <= at) j += step;
    for (int64_t within = at; within < size && place < end; ++j) {
      const int64_t begin = packed_begin(n, j), count = std::min(end - place, packed_begin(n, j + 1) - within);
      std::copy_n(from, count, rows + (matrix * n + j) * n + j + (within - begin));
      from += count;
      within += count;
      place += count;
    }
  }
}

}  // namespace

std::vector<int64_t> moment_sizes(KeyShape keys) {
  std::vector<int64_t> sizes{keys.width, keys.width};
  if (keys.experts > 1) sizes.insert(sizes.begin(), keys.experts);
  return sizes;
}

MatrixFile MatrixFile::open(const std::filesystem::path& path, const MatrixKind& kind, KeyShape keys) {
  return with_remedy([&] {
    MatrixFile file(SealedFile::open(path, kind.format), kind, keys);
    const std::vector<TensorInfo>& tensors = file.file_.tensors();
    if (tensors.size() != 1 || tensors[0].name != kind.tensor || tensors[0].dtype != DType::kF64 ||
        tensors[0].shape != stored_shape(tensors[0], kind.shape, keys))
      throw CheckpointError(cat(path.string(), ": not a cached ", kind.title, " of size ", keys.size()));
    if (file.file_.fact(kNameFact) != path.stem())
      throw CheckpointError(
          cat(path.string(), ": written as '", file.file_.fact(kNameFact), "', for other statistics"));
    return file;
  });
}

double MatrixFile::number(const std::string& fact) const {
  return with_remedy([&] {
    const std::string& text = file_.fact(fact);
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end)
      throw CheckpointError(cat(file_.path().string(), ": '", fact, "': expected a number, got '", text, "'"));
    return value;
  });
}

Tensor MatrixFile::load() const {
  return with_remedy([&] {
    if (kind_.shape == MatrixShape::kWide) return load_tensors(file_).front().second;
    const int64_t n = keys_.width;
    const Tensor rows = lazy_zeros(moment_sizes(keys_));
    file_.read([&](const SealedFile::Piece& piece) { unpack(piece, n, rows.mutable_data_ptr<double>()); });
    if (kind_.shape == MatrixShape::kLower) return rows.mT();
    mirror_lower(rows.mT());
    return rows;
  });
}

int64_t MatrixFile::bytes() const {
  const std::vector<int64_t> sizes =
      kind_.shape == MatrixShape::kWide ? file_.tensors().front().shape : moment_sizes(keys_);
  return c10::multiply_integers(sizes) * static_cast<int64_t>(sizeof(double));
}

void MatrixFile::check() const {
  with_remedy([&] { file_.check(); });
}

bool is_whole(const std::filesystem::path& path, const std::function<void()>& check) {
  if (!std::filesystem::exists(path)) return false;
  try {
    check();
    return true;
  } catch (const CheckpointError& error) {
    log_warning(cat("statistics: ", error.what()));
    return false;
  }
}

bool has_matrix(const std::filesystem::path& path, const MatrixKind& kind, KeyShape keys) {
  return is_whole(path, [&] { MatrixFile::open(path, kind, keys).check(); });
}

std::string exact_text(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

void write_matrix(const std::filesystem::path& path, const MatrixKind& kind, const Tensor& matrix, Metadata facts) {
  std::error_code problem;
  std::filesystem::create_directories(path.parent_path(), problem);  // a failure shows when the file is written
  const Tensor rows = kind.shape == MatrixShape::kLower ? matrix.mT() : matrix;
  const Tensor stored = kind.shape == MatrixShape::kWide ? rows : packed(rows);
  facts[kNameFact] = path.stem();
  write_tensors(path, kind.format, {{std::string(kind.tensor), stored}}, facts);
}

}  // namespace lancet
