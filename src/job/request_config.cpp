#include "request_config.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/read_option.h"

namespace lancet {

RequestFileOptions parse_file_options(ConfigSection& section) {
  RequestFileOptions options;
  options.range.skip = read(section, RequestsSpec::kSkip);
  options.range.limit = read_given(section, RequestsSpec::kLimit);
  std::vector<std::string> formats = request_formats();
  formats.emplace_back(kAutoFormat);
  options.format = section.choice(RequestsSpec::kFormat.key, formats, std::string(*RequestsSpec::kFormat.fallback));
  return options;
}

RequestSource parse_request_source(ConfigSection& job, const std::filesystem::path& base, TargetNeed target) {
  RequestSource source;
  const ConfigTree* requests = job.raw(JobSpec::kRequests.key);
  if (requests == nullptr) {
    job.problem(JobSpec::kRequests.key, "expected {path: FILE} or a list of {prompt, subject, target}");
    return source;
  }
  if (requests->kind == ConfigTree::Kind::kList) {
    try {
      source.inline_requests = parse_requests(*requests, target);
    } catch (const ConfigError& error) {
      for (const std::string& problem : split(error.what(), '\n')) job.problem(JobSpec::kRequests.key, problem);
    }
    return source;
  }
  ConfigSection section = job.section(JobSpec::kRequests.key);
  source.path = read(section, RequestsSpec::kPath, base);
  source.options = parse_file_options(section);
  source.options.target = target;
  source.options.on_bad_record = read<OnBadRecord>(section, RequestsSpec::kOnBadRecord);
  section.finish();
  return source;
}

}  // namespace lancet
