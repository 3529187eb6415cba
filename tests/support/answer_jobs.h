// The whole of a program that answers many jobs at once, since starting takes longer than one of them: PROGRAM
// JOBS.json, an object of jobs by name. It prints the object of their answers; of a job that is refused that is
// {"error", "exit_code"}.
#pragma once

#include <torch/types.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/models/tensor_reader.h"
#include "lancet/runtime/placement.h"

namespace lancet::testing {

/// Reads the tensor on the host, in memory of its own, in the type that the file has.
inline Tensor read_as_stored(const TensorView& view) {
  const std::vector<TensorRead> reads{{view, Placement::host(), to_scalar_type(view.dtype)}};
  return read_tensors(reads, [](int64_t) {}).front();
}

template <typename Answer>
int answer_jobs(int argc, char** argv, const Answer& answer) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " JOBS.json\n";
    return 2;
  }
  std::ifstream file(argv[1]);
  nlohmann::json answers = nlohmann::json::object();
  const nlohmann::json jobs = nlohmann::json::parse(file);
  for (const auto& [name, job] : jobs.items()) {
    try {
      answers[name] = answer(job);
    } catch (const Error& error) {
      answers[name] = {{"error", error.what()}, {"exit_code", static_cast<int>(error.exit_code())}};
    }
  }
  std::cout << answers.dump() << '\n';
  return 0;
}

}  // namespace lancet::testing
