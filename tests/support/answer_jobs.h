// A program that answers many jobs at once, since starting takes longer than one of them: answer_jobs KIND JOBS.json,
// an object of jobs by name. It prints the object of their answers; of a job that is refused that is
// {"error", "exit_code"}.
#pragma once

#include <torch/types.h>

#include <nlohmann/json_fwd.hpp>

#include "lancet/models/tensor_io.h"

namespace lancet::testing {

/// The kinds of jobs, each with a file of its name.
nlohmann::json adapter_files(const nlohmann::json& job);
nlohmann::json dump_logits(const nlohmann::json& job);
nlohmann::json dump_weights(const nlohmann::json& job);
nlohmann::json mixed_checkpoint(const nlohmann::json& job);
nlohmann::json pack_weights(const nlohmann::json& job);

/// Reads the tensor on the host, in memory of its own, in the type that the file has.
Tensor read_as_stored(const TensorView& view);

}  // namespace lancet::testing
