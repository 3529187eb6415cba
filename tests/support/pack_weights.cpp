// answer_jobs pack_weights JOBS.json
// Packs matrices as files of a format have them, for comparison with other programs: many at once, since starting takes
// longer than that. JOBS.json: an object of jobs, each {"name", "shape": [out, in], "weight": a safetensors file with
// "weight" and, for errors that are made good, "importance", "out": a safetensors file} and optionally {"scales":
// "largest" or "least_error", "damping"}. With "folder" the matrix is packed again as the model there has it; with
// "code" {"packing", "bits", "block": [rows, columns], "zeros", "symmetric"} anew. Written are the parts by their
// names, and "unpacked", f64. With "gguf_type" the matrix becomes blocks of that type: "blocks" and "unpacked". Prints
// an object of answers: "parts" with each part's name, or "error" and "exit_code".
#include <torch/types.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/quant/gguf_blocks.h"
#include "lancet/quant/pack.h"
#include "lancet/quant/packed_matrix.h"
#include "lancet/quant_formats/find_packed.h"
#include "support/answer_jobs.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

using testing::read_as_stored;

const std::map<std::string, MatrixPacking> kPackings{{"bitsandbytes-4", MatrixPacking::kBitsAndBytes4},
                                                     {"bitsandbytes-8", MatrixPacking::kBitsAndBytes8},
                                                     {"gptq", MatrixPacking::kGptq},
                                                     {"awq", MatrixPacking::kAwq},
                                                     {"float8", MatrixPacking::kFloat8},
                                                     {"compressed-packed", MatrixPacking::kCompressedPacked},
                                                     {"compressed-int8", MatrixPacking::kCompressedInt8},
                                                     {"mxfp4", MatrixPacking::kMxfp4}};
const std::map<std::string, ZeroPoints> kZeroPoints{
    {"none", ZeroPoints::kNone}, {"stored", ZeroPoints::kStored}, {"stored_less_one", ZeroPoints::kStoredLessOne}};

MatrixCode code_of(const Json& json) {
  return {.packing = kPackings.at(json.at("packing")),
          .bits = json.value("bits", 8),
          .block = {json.at("block")[0].get<int64_t>(), json.at("block")[1].get<int64_t>()},
          .zeros = kZeroPoints.at(json.value("zeros", "none")),
          .symmetric = json.value("symmetric", true),
          .ordered = json.value("ordered", false),
          .in_scale_type = json.value("in_scale_type", false)};
}

PackOptions options_of(const Json& job) {
  PackOptions options;
  options.damping = job.value("damping", options.damping);
  if (job.contains("scales"))
    options.scales = job["scales"] == "largest" ? ScaleChoice::kLargest : ScaleChoice::kLeastError;
  return options;
}

NewlyPacked pack_again(const Json& job, const Tensor& weight, const Tensor& importance) {
  const Checkpoint checkpoint = Checkpoint::open(job.at("folder").get<std::string>());
  const std::optional<QuantScheme> scheme = QuantScheme::parse(checkpoint.config_text(), {}, "config.json");
  std::vector<std::string> problems;
  const std::string name = job.at("name");
  const MatrixPlace place{name, job.at("shape")[0].get<int64_t>(), job.at("shape")[1].get<int64_t>()};
  const std::optional<PackedSpec> spec = find_packed(scheme.value(), checkpoint, place, problems);
  if (!spec) throw CheckpointError(join(problems, "\n"));
  std::vector<Tensor> before;
  for (const PackedPart& part : spec->parts) before.push_back(read_as_stored(checkpoint.view(part.tensor)));
  return {*spec, repack(weight, *spec, before, importance, options_of(job))};
}

Json answer_as_blocks(const Json& job, const Tensor& weight) {
  const GgufType* type = find_gguf_type(job.at("gguf_type").get<std::string>());
  if (type == nullptr) throw CheckpointError("no type of that name");
  const Tensor blocks = encode_blocks(weight, *type, job.at("name"));
  const Tensor unpacked = decode_rows_of(blocks, *type).to(at::kDouble);
  const std::vector<TensorSource> sources{to_source("blocks", blocks), to_source("unpacked", unpacked)};
  write_safetensors(job.at("out").get<std::string>(), sources, {});
  return {{"parts", {"blocks"}}};
}

Json packed_answer(const Json& job) {
  const SafetensorsReader file = SafetensorsReader::open(job.at("weight").get<std::string>());
  const Tensor weight = read_as_stored(file.view("weight"));
  const Tensor importance = file.contains("importance") ? read_as_stored(file.view("importance")) : Tensor();
  if (job.contains("gguf_type")) return answer_as_blocks(job, weight);
  const NewlyPacked packed = job.contains("code")
                                 ? pack(weight, code_of(job["code"]), job.at("name"), importance, options_of(job))
                                 : pack_again(job, weight, importance);
  NamedTensors tensors{{"unpacked", PackedMatrix::assemble(packed.spec, packed.parts).unpack(at::kDouble)}};
  Json parts = Json::array();
  for (size_t i = 0; i < packed.parts.size(); ++i) {
    tensors.emplace_back(packed.spec.parts[i].tensor, packed.parts[i]);
    parts.push_back(packed.spec.parts[i].tensor);
  }
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors) sources.push_back(to_source(name, tensor));
  write_safetensors(job.at("out").get<std::string>(), sources, {});
  return {{"parts", parts}, {"stored_bytes", packed.spec.stored_bytes}};
}

}  // namespace

nlohmann::json testing::pack_weights(const nlohmann::json& job) { return packed_answer(job); }

}  // namespace lancet
