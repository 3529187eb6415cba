// dump_weights MODEL_DIR SHAPES.json OUT.safetensors f32|f16|bf16|f64 [int8|nf4|fp8]
// Unpacks the quantised matrices of a model folder, for comparison with other programs. SHAPES.json: {"name": [out,
// in]}. With a quantiser: packs the folder's full-precision matrices first. Prints one JSON object: of each matrix that
// is quantised its bytes in memory ("bytes"), as the configuration foretells them ("foretold") and in the file
// ("stored_bytes"), and its "tensors"; null of the others, which are not written.
#include <torch/types.h>

#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/models/tensor_reader.h"
#include "lancet/quant/packed_matrix.h"
#include "lancet/quant/quantise.h"
#include "lancet/runtime/placement.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

Tensor read_as_stored(const Checkpoint& checkpoint, const std::string& name) {
  const TensorView view = checkpoint.view(name);
  const std::vector<TensorRead> reads{{view, Placement::host(), to_scalar_type(view.dtype)}};
  return read_tensors(reads, [](int64_t) {}).front();
}

PackedMatrix read_packed(const Checkpoint& checkpoint, const PackedSpec& spec) {
  std::vector<Tensor> parts;
  for (const PackedPart& part : spec.parts)
    parts.push_back(part.role == PartRole::kRecord ? Tensor() : read_as_stored(checkpoint, part.tensor));
  return PackedMatrix::assemble(spec, parts);
}

class Dump {
 public:
  Dump(const std::string& folder, at::ScalarType dtype) : checkpoint_(Checkpoint::open(folder)), dtype_(dtype) {}

  void unpack(const Json& shapes) {
    const std::optional<QuantScheme> scheme =
        QuantScheme::parse(checkpoint_.config_text(), {}, (checkpoint_.folder() / "config.json").string());
    if (!scheme) throw CheckpointError("nothing is quantised");
    std::vector<std::string> problems;
    for (const auto& [name, shape] : shapes.items()) {
      const MatrixPlace place{name, shape[0].get<int64_t>(), shape[1].get<int64_t>()};
      const std::optional<PackedSpec> spec = find_packed(*scheme, checkpoint_, place, problems);
      facts_[name] = nullptr;
      if (!spec) continue;
      Json tensors = Json::array();
      for (const PackedPart& part : spec->parts) tensors.push_back(part.tensor);
      const PackedMatrix matrix = read_packed(checkpoint_, *spec);
      facts_[name] = {{"bytes", matrix.bytes()},
                      {"foretold", packed_bytes(spec->code, spec->rows, spec->columns)},
                      {"stored_bytes", spec->stored_bytes},
                      {"tensors", tensors}};
      add(name, matrix);
    }
    if (!problems.empty()) throw CheckpointError(join(problems, "\n"));
  }

  void quantise_all(const Json& shapes, Quantiser quantiser) {
    for (const auto& [name, shape] : shapes.items()) {
      const PackedMatrix matrix = quantise(read_as_stored(checkpoint_, name), quantiser, name);
      facts_[name] = {{"bytes", matrix.bytes()},
                      {"foretold", quantised_bytes(quantiser, matrix.rows(), matrix.columns())}};
      add(name, matrix);
    }
  }

  void write(const std::string& path) const {
    std::vector<TensorSource> sources;
    for (const auto& [name, tensor] : tensors_) sources.push_back(to_source(name, tensor));
    write_safetensors(path, sources, {});
    std::cout << facts_.dump() << '\n';
  }

 private:
  void add(const std::string& name, const PackedMatrix& matrix) { tensors_.emplace_back(name, matrix.unpack(dtype_)); }

  Checkpoint checkpoint_;
  at::ScalarType dtype_;
  Json facts_ = Json::object();
  NamedTensors tensors_;
};

}  // namespace
}  // namespace lancet

int main(int argc, char** argv) {
  using lancet::Quantiser;
  const std::map<std::string, at::ScalarType> dtypes{
      {"f32", torch::kFloat}, {"f16", torch::kHalf}, {"bf16", torch::kBFloat16}, {"f64", torch::kDouble}};
  const std::map<std::string, Quantiser> quantisers{
      {"int8", Quantiser::kInt8}, {"nf4", Quantiser::kNf4}, {"fp8", Quantiser::kFloat8}};
  if (argc < 5 || argc > 6 || !dtypes.contains(argv[4]) || (argc == 6 && !quantisers.contains(argv[5]))) {
    std::cerr << "usage: dump_weights MODEL_DIR SHAPES.json OUT.safetensors f32|f16|bf16|f64 [int8|nf4|fp8]\n";
    return 2;
  }
  try {
    lancet::Dump dump(argv[1], dtypes.at(argv[4]));
    std::ifstream file(argv[2]);
    const nlohmann::json shapes = nlohmann::json::parse(file);
    if (argc == 6)
      dump.quantise_all(shapes, quantisers.at(argv[5]));
    else
      dump.unpack(shapes);
    dump.write(argv[3]);
    return 0;
  } catch (const lancet::Error& error) {
    std::cerr << error.what() << '\n';
    return static_cast<int>(error.exit_code());
  }
}
