#include "support/answer_jobs.h"

#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "lancet/core/error.h"
#include "lancet/runtime/devices.h"

namespace lancet::testing {
namespace {

using Answer = nlohmann::json (*)(const nlohmann::json&);

const std::map<std::string, Answer> kAnswers{{"adapter_files", adapter_files},
                                             {"dump_logits", dump_logits},
                                             {"dump_weights", dump_weights},
                                             {"mixed_checkpoint", mixed_checkpoint},
                                             {"pack_weights", pack_weights}};

nlohmann::json answer_all(const nlohmann::json& jobs, Answer answer) {
  nlohmann::json answers = nlohmann::json::object();
  for (const auto& [name, job] : jobs.items()) {
    try {
      answers[name] = answer(job);
    } catch (const Error& error) {
      answers[name] = {{"error", error.what()}, {"exit_code", static_cast<int>(error.exit_code())}};
    }
  }
  return answers;
}

}  // namespace

Tensor read_as_stored(const TensorView& view) {
  const std::vector<TensorRead> reads{{view, Placement::host(), to_scalar_type(view.dtype)}};
  return read_tensors(reads, [](int64_t) {}).front();
}

}  // namespace lancet::testing

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " KIND JOBS.json\n";
    return 2;
  }
  std::ifstream jobs(argv[2]);
  std::cout << lancet::testing::answer_all(nlohmann::json::parse(jobs), lancet::testing::kAnswers.at(argv[1])).dump()
            << '\n';
  return 0;
}
