// `lancet push` for a folder of edits, in an engine without a session.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <nlohmann/json.hpp>

#include "bindings.h"
#include "call.h"
#include "lancet/push/push_job.h"

namespace lancet::python {
namespace {

namespace nb = nanobind;

ServerAccess access_of(const nlohmann::json& job) {
  ServerAccess access{.token = job.at("token").get<std::string>()};
  const auto url = job.at("to").get<std::string>();
  if (!url.empty()) access.address = parse_http_address(url);
  access.timeout = std::chrono::seconds(job.at("timeout_s").get<int64_t>());
  return access;
}

/// Returns the report as JSON. `text`: JSON of a job with every key.
std::string run_push(Engine& engine, const std::string& text) {
  std::string json;
  run_on_worker(engine, [&] {
    const nlohmann::json given = nlohmann::json::parse(text);
    PushJob job{.output = given.at("edits").get<std::string>(),
                .access = access_of(given),
                .server = given.at("server").get<std::string>(),
                .name = given.at("name").get<std::string>(),
                .instead_of = given.at("instead_of").get<std::string>(),
                .model = given.at("model").get<std::string>(),
                .adapter_dir = given.at("adapter_dir").get<std::string>(),
                .server_path = given.at("server_path").get<std::string>(),
                .largest_rank = given.at("rank").get<int64_t>(),
                .most_asked = given.at("asked").get<int64_t>()};
    for (const auto& [metric, share] : given.at("accept").items()) add_push_threshold(job, metric, share.get<double>());
    json = to_json(run_push_job(job), job);
  });
  return json;
}

/// Returns the record of the push that was taken back, as JSON. `text`: edits, to, token, timeout_s.
std::string run_undo_push(Engine& engine, const std::string& text) {
  std::string json;
  run_on_worker(engine, [&] {
    const nlohmann::json given = nlohmann::json::parse(text);
    json = to_json(undo_push(given.at("edits").get<std::string>(), access_of(given)));
  });
  return json;
}

}  // namespace

void bind_push(nb::module_& module) {
  module.def("run_push", run_push, nb::arg("engine"), nb::arg("job"));
  module.def("run_undo_push", run_undo_push, nb::arg("engine"), nb::arg("job"));
}

}  // namespace lancet::python
