// answer_jobs dump_weights JOBS.json
// Unpacks the quantised matrices of model folders, for comparison with other programs: many at once, since starting
// takes longer than that. JOBS.json: an object of jobs, each {"folder", "shapes": {"name": [out, in]}, "dtypes":
// ["f32", ...], "out": a safetensors file, for "DTYPE|NAME"}; with "quantiser" the folder's full-precision matrices are
// packed first. Prints an object of answers: of each matrix that is quantised its bytes in memory ("bytes"), as its
// code foretells them
// ("foretold") and in the file ("stored_bytes"), and its "tensors"; null of the others, which are not written. Of a job
// that is refused "error" and "exit_code".
#include <torch/types.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"
#include "lancet/quant/quantise.h"
#include "lancet/quant_formats/find_packed.h"
#include "support/answer_jobs.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

using DTypes = std::map<std::string, at::ScalarType>;
const DTypes kDTypes{
    {"f32", torch::kFloat}, {"f16", torch::kHalf}, {"bf16", torch::kBFloat16}, {"f64", torch::kDouble}};
const std::map<std::string, Quantiser> kQuantisers{
    {"int8", Quantiser::kInt8}, {"nf4", Quantiser::kNf4}, {"fp8", Quantiser::kFloat8}};

class Dump {
 public:
  explicit Dump(const Json& job) : job_(job), checkpoint_(Checkpoint::open(job.at("folder").get<std::string>())) {}

  /// What is known of each matrix.
  Json run() {
    if (job_.contains("quantiser"))
      quantise_all(kQuantisers.at(job_["quantiser"]));
    else
      unpack_all();
    std::vector<TensorSource> sources;
    for (const auto& [name, tensor] : tensors_) sources.push_back(to_source(name, tensor));
    write_safetensors(job_.at("out").get<std::string>(), sources, {});
    return facts_;
  }

 private:
  void unpack_all() {
    const std::optional<QuantScheme> scheme =
        QuantScheme::parse(checkpoint_.config_text(), {}, (checkpoint_.folder() / "config.json").string());
    if (!scheme) throw CheckpointError("nothing is quantised");
    std::vector<std::string> problems;
    for (const auto& [name, shape] : job_.at("shapes").items()) {
      const MatrixPlace place{name, shape[0].get<int64_t>(), shape[1].get<int64_t>()};
      const std::optional<PackedSpec> spec = find_packed(*scheme, checkpoint_, place, problems);
      facts_[name] = nullptr;
      if (!spec) continue;
      Json tensors = Json::array();
      for (const PackedPart& part : spec->parts) tensors.push_back(part.tensor);
      const PackedMatrix matrix = read_packed(checkpoint_, *spec, Placement::host());
      facts_[name] = {{"bytes", matrix.bytes()},
                      {"foretold", packed_bytes(spec->code, spec->rows, spec->columns)},
                      {"stored_bytes", spec->stored_bytes},
                      {"tensors", tensors}};
      add(name, matrix);
    }
    if (!problems.empty()) throw CheckpointError(join(problems, "\n"));
  }

  void quantise_all(Quantiser quantiser) {
    for (const auto& [name, shape] : job_.at("shapes").items()) {
      const PackedMatrix matrix = quantise(testing::read_as_stored(checkpoint_.view(name)), quantiser, name);
      facts_[name] = {{"bytes", matrix.bytes()},
                      {"foretold", quantised_bytes(quantiser, matrix.rows(), matrix.columns())}};
      add(name, matrix);
    }
  }

  void add(const std::string& name, const PackedMatrix& matrix) {
    for (const std::string dtype : job_.at("dtypes"))
      tensors_.emplace_back(dtype + "|" + name, matrix.unpack(kDTypes.at(dtype)));
  }

  const Json& job_;
  Checkpoint checkpoint_;
  Json facts_ = Json::object();
  NamedTensors tensors_;
};

}  // namespace

nlohmann::json testing::dump_weights(const nlohmann::json& job) { return Dump(job).run(); }

}  // namespace lancet
