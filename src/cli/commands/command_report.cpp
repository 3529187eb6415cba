#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/io/model_file_output.h"
#include "lancet/io/output_folder.h"
#include "lancet/pages/latex_table.h"
#include "lancet/pages/report_page.h"

namespace lancet::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kReport = "report.json";
constexpr const char* kCompare = "compare.json";

std::string text_if_there(const fs::path& path) {
  return fs::exists(path) ? read_text_file(path, "resolved job") : std::string();
}

/// Returns the folder's name, also for "out/demo/" and ".".
std::string name_of(const fs::path& folder) { return fs::weakly_canonical(folder).filename().string(); }

RunDocument read_run(const fs::path& folder, std::string label) {
  return {.label = std::move(label),
          .json = read_text_file(folder / kReport, "report"),
          .job_yaml = text_if_there(folder / "job.yaml"),
          .failure = {}};
}

/// Reads one run of a method that was compared with several seeds.
RunDocument read_seed(const fs::path& folder, const std::string& label, const Json& run) {
  const fs::path report = run.at("report").get<std::string>();
  RunDocument document = read_run(folder / report.parent_path(), cat(label, ", seed ", run.at("seed").get<uint64_t>()));
  document.series = label;
  return document;
}

/// Reads the methods in a folder of lancet compare.
std::vector<RunDocument> read_comparison(const fs::path& folder) {
  const fs::path path = folder / kCompare;
  std::vector<RunDocument> runs;
  try {
    const Json comparison = parse_ordered_json(read_text_file(path, "comparison"));
    for (const Json& method : comparison.at("methods")) {
      const std::string label = method.at("label");
      if (method.contains("runs"))
        for (const Json& run : method.at("runs")) runs.push_back(read_seed(folder, label, run));
      else if (method.at("status") == "done")
        runs.push_back(read_run(folder / label, label));
      else
        runs.push_back({.label = label, .json = {}, .job_yaml = {}, .failure = method.at("error")});
    }
  } catch (const JsonProblem& problem) {
    throw ConfigError(cat("comparison: ", path.string(), ": ", problem.what()));
  } catch (const Json::exception& error) {
    throw ConfigError(cat("comparison: ", path.string(), ": ", error.what()));
  }
  return runs;
}

/// Reads the runs in a folder of lancet.
std::vector<RunDocument> read_folder(const fs::path& folder) {
  if (fs::exists(folder / kCompare)) return read_comparison(folder);
  if (fs::exists(folder / kReport)) return {read_run(folder, name_of(folder))};
  const fs::path rejected = folder.lexically_normal().string() + ".rejected";
  throw ConfigError(cat("lancet report: ", folder.string(),
                        ": expected report.json or compare.json in it, as lancet edit "
                        "and lancet compare write them",
                        fs::exists(rejected / kReport) ? cat(". The job was rejected: ", rejected.string()) : ""));
}

/// Puts the folder before equal names, because two runs must not look like one. `folders`: for each run the folder that
/// was given.
void tell_apart(std::vector<RunDocument>& runs, const std::vector<fs::path>& folders) {
  std::vector<std::string> labels;
  for (const RunDocument& run : runs) labels.push_back(run.label);
  for (size_t i = 0; i < runs.size(); ++i) {
    if (std::count(labels.begin(), labels.end(), labels[i]) < 2) continue;
    const fs::path own = fs::exists(folders[i] / kCompare) ? folders[i] / labels[i] : folders[i];
    runs[i].label = own.lexically_normal().string();
  }
}

/// Only pages that lancet wrote are replaced.
void check_replaceable(const fs::path& page) {
  if (fs::exists(page) && !is_own_page(read_text_file(page, "--out")))
    throw ConfigError(cat("--out: ", page.string(), ": exists, and is no page that lancet wrote. Choose another name"));
}

std::vector<fs::path> write_single(const fs::path& folder) {
  const ReportFiles files = render_report(read_run(folder, name_of(folder)));
  std::vector<fs::path> paths;
  for (const auto& [name, text] : files.named()) {
    paths.push_back(folder / name);
    write_text_file(paths.back(), text);
  }
  return paths;
}

std::vector<RunDocument> read_folders(const std::vector<std::string>& folders) {
  std::vector<RunDocument> runs;
  std::vector<fs::path> homes;
  for (const std::string& folder : folders)
    for (RunDocument& run : read_folder(folder)) {
      // the same method in two comparisons makes two series
      if (folders.size() > 1 && !run.series.empty())
        run.series = (fs::path(folder) / run.series).lexically_normal().string();
      runs.push_back(std::move(run));
      homes.emplace_back(folder);
    }
  tell_apart(runs, homes);
  return runs;
}

std::vector<fs::path> write_comparison(const std::vector<std::string>& folders, const fs::path& page) {
  const std::vector<RunDocument> runs = read_folders(folders);
  std::vector<std::string> names;
  for (const std::string& folder : folders) names.push_back(name_of(folder));
  check_replaceable(page);
  write_text_file(page, render_comparison(runs, join(names)));
  return {page};
}

/// Returns the folders of a comparison's runs that have a report.
std::vector<fs::path> run_folders(const fs::path& folder) {
  std::vector<fs::path> folders;
  const Json comparison = parse_ordered_json(read_text_file(folder / kCompare, "comparison"));
  for (const Json& method : comparison.at("methods")) {
    if (method.contains("runs"))
      for (const Json& run : method.at("runs"))
        folders.push_back((folder / run.at("report").get<std::string>()).parent_path());
    else if (method.at("status") == "done")
      folders.push_back(folder / method.at("label").get<std::string>());
  }
  return folders;
}

std::vector<fs::path> write_pages(const std::vector<std::string>& folders, const std::string& out) {
  if (folders.size() > 1) return write_comparison(folders, out.empty() ? "comparison.html" : out);
  const fs::path folder = folders.front();
  if (fs::exists(folder / kCompare)) {
    std::vector<fs::path> paths = write_comparison(folders, out.empty() ? folder / "comparison.html" : fs::path(out));
    for (const fs::path& own : run_folders(folder))
      for (const fs::path& path : write_single(own)) paths.push_back(path);
    return paths;
  }
  if (!out.empty())
    throw ConfigError(cat("--out: names the page of a comparison; ", folder.string(),
                          " is one run, whose report.html lies in it. Give several folders, or leave --out away"));
  read_folder(folder);  // throws, and says what is missing
  return write_single(folder);
}

ExitCode print_latex(const std::vector<std::string>& folders, const Output& output) {
  const std::string table = latex_table(read_folders(folders));
  if (output.json)
    std::cout << Json{{"latex", table}}.dump(1) << "\n";
  else
    std::cout << table;
  return ExitCode::kOk;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto folders = std::make_shared<std::vector<std::string>>();
  auto out = std::make_shared<std::string>();
  auto output = std::make_shared<Output>();
  CLI::App& command =
      add_command(app, "report",
                  "Write report.html again from a folder's report.json, or one page that compares several folders, or "
                  "print a LaTeX table.\n"
                  "  lancet report out/demo\n"
                  "  lancet report out/memit out/alphaedit --out comparison.html\n"
                  "  lancet report out/demo --latex > table.tex");
  add_option(command, "folders", *folders, "Outputs of lancet edit or lancet compare").required();
  auto latex = std::make_shared<bool>(false);
  const Argument page =
      add_option(command, "--out", *out, "File for the page that compares several folders; default: comparison.html");
  add_flag(command, "--latex", *latex,
           "Print a table for a paper (LaTeX, package booktabs) of one output, a comparison or several outputs; "
           "writes nothing")
      .excludes(page);
  add_output_options(command, *output);
  on_choice(command, action, [=] {
    begin(*output);
    for (std::string& folder : *folders) folder = existing_output(folder).folder.string();
    if (*latex) return print_latex(*folders, *output);
    const std::vector<fs::path> paths = write_pages(*folders, *out);
    if (folders->size() == 1) note_written(folders->front(), paths);
    Json written = Json::array();
    for (const fs::path& path : paths) {
      written.push_back(path.string());
      if (!output->json && !output->quiet) std::cout << "written: " << path.string() << "\n";
    }
    if (output->json) std::cout << Json{{"written", written}}.dump(1) << "\n";
    return ExitCode::kOk;
  });
}

}  // namespace lancet::cli
