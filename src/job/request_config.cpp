#include "request_config.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

RequestFileOptions parse_file_options(ConfigSection& section) {
  RequestFileOptions options;
  options.range.skip = section.integer("skip", {.min = 0}, 0);
  if (section.has("limit")) options.range.limit = section.integer("limit", {.min = 1});
  std::vector<std::string> formats = request_formats();
  formats.emplace_back(kAutoFormat);
  options.format = section.choice("format", formats, std::string(kAutoFormat));
  return options;
}

RequestSource parse_request_source(ConfigSection& job, const std::filesystem::path& base) {
  RequestSource source;
  const ConfigTree* requests = job.raw("requests");
  if (requests == nullptr) {
    job.problem("requests", "expected {path: FILE} or a list of {prompt, subject, target}");
    return source;
  }
  if (requests->kind == ConfigTree::Kind::kList) {
    try {
      source.inline_requests = parse_requests(*requests);
    } catch (const ConfigError& error) {
      for (const std::string& problem : split(error.what(), '\n')) job.problem("requests", problem);
    }
    return source;
  }
  ConfigSection section = job.section("requests");
  source.path = section.path("path", base);
  source.options = parse_file_options(section);
  source.options.on_bad_record = section.choice_of<OnBadRecord>("on_bad_record", {"error", "skip"});
  section.finish();
  return source;
}

}  // namespace lancet
