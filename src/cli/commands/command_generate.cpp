// `lancet generate`: one model, or two side by side, continues prompts from the command line, a file, a pipe or a
// terminal.
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "commands.h"
#include "generate_models.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Number of positions for which memory is planned if prompts are not known beforehand.
constexpr int64_t kUnknownPrompt = 4096;

struct GenerateArguments {
  std::string model;
  std::string beside;
  std::vector<std::string> prompts;
  std::string prompts_file;
  ChatChoice chat;
  TypedOptions asked, run;

  bool has_prompts() const { return !prompts.empty() || !prompts_file.empty(); }
};

/// Reads a line, and removes the carriage return with which other systems end lines.
bool read_line(std::istream& in, std::string& line) {
  if (!std::getline(in, line)) return false;
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

std::vector<std::string> read_prompts(const GenerateArguments& arguments) {
  std::vector<std::string> prompts = arguments.prompts;
  if (arguments.prompts_file.empty()) return prompts;
  std::istringstream in(read_text_file(arguments.prompts_file, "--prompts"));
  const size_t before = prompts.size();
  for (std::string line; read_line(in, line);) prompts.push_back(line);
  if (prompts.size() == before)
    throw ConfigError(cat("--prompts: ", arguments.prompts_file, ": expected a prompt per line, got an empty file"));
  return prompts;
}

/// The models that answer, and how their answers are shown.
class GenerateSession {
 public:
  enum class Echo { kPrompt, kNone };  ///< a terminal already shows the prompt

  GenerateSession(const GenerateArguments& arguments, const Output& output)
      : settings_(parse_generate_options(arguments.asked.tree(), flag_of)),
        is_chat_(arguments.chat.from_model || !arguments.chat.by_hand.empty()),
        json_(output.json) {
    models_.emplace_back(arguments.model, arguments.chat);
    if (!arguments.beside.empty()) models_.emplace_back(arguments.beside, arguments.chat);
  }

  /// `prompts`: empty if they are not known yet.
  void load(const std::vector<std::string>& prompts, const RunOptions& run) {
    std::vector<GenerationSize> sizes;
    for (const GenerateModel& model : models_) {
      const int64_t most = std::min(model.max_positions(), std::max(kUnknownPrompt, settings_.tokens + 1));
      int64_t longest = prompts.empty() ? std::max<int64_t>(1, most - settings_.tokens) : 0;
      for (const std::string& prompt : prompts)
        longest =
            std::max(longest, static_cast<int64_t>(model.generator().prompt_ids(prompt, settings_.tokens).size()));
      const auto rows = std::max<int64_t>(1, static_cast<int64_t>(prompts.size())) * settings_.samples;
      sizes.push_back({rows, longest + settings_.tokens, longest, settings_.sampling});
    }
    for (size_t i = 0; i < models_.size(); ++i) models_[i].load(run, sizes[i]);
  }

  void ask(const std::vector<std::string>& prompts, Echo echo) {
    const bool streams = echo == Echo::kNone && models_.size() == 1 && settings_.samples == 1 && !json_;
    const auto show_part = [](const std::string& text) { std::cout << text << std::flush; };
    std::vector<std::vector<Answer>> answers;
    settings_.first_prompt = n_asked_;
    for (const GenerateModel& model : models_)
      answers.push_back(model.generator().answer(model.model(), prompts, settings_,
                                                 streams ? show_part : std::function<void(const std::string&)>()));
    n_asked_ += static_cast<int64_t>(prompts.size());
    if (streams)
      std::cout << "\n";
    else
      show(prompts, answers, echo);
    std::cout << std::flush;
  }

  /// Returns how many rows of the two models differ.
  std::string comparison() const { return cat(n_different_, " of ", n_asked_ * settings_.samples, " rows differ"); }
  bool compares() const { return models_.size() > 1; }

 private:
  void show(const std::vector<std::string>& prompts, const std::vector<std::vector<Answer>>& answers, Echo echo) {
    for (size_t row = 0; row < answers[0].size(); ++row) {
      const std::string& prompt = prompts[row / static_cast<size_t>(settings_.samples)];
      const Answer& first = answers[0][row];
      const Answer* second = compares() ? &answers[1][row] : nullptr;
      const bool differs = second != nullptr && first.text != second->text;
      n_different_ += differs ? 1 : 0;
      if (json_) {
        show_json(prompt, first, second, static_cast<int64_t>(row) % settings_.samples);
        continue;
      }
      if (second == nullptr) {
        std::cout << (echo == Echo::kPrompt ? prompt + (is_chat_ ? "\n" : "") : "") << first.text << "\n";
        continue;
      }
      if (echo == Echo::kPrompt) std::cout << prompt << "\n";
      const size_t width = std::max(models_[0].folder().size(), models_[1].folder().size());
      for (size_t i = 0; i < 2; ++i) {
        const std::string& label = models_[i].folder();
        std::cout << (differs ? "  * " : "    ") << label << std::string(width - label.size() + 2, ' ')
                  << answers[i][row].text << "\n";
      }
    }
  }

  void show_json(const std::string& prompt, const Answer& first, const Answer* second, int64_t sample) const {
    Json json{{"prompt", prompt}};
    if (settings_.samples > 1) json["sample"] = sample;
    json["text"] = first.text;
    json["ids"] = first.ids;
    if (second != nullptr) {
      json["beside"] = {{"text", second->text}, {"ids", second->ids}};
      json["differs"] = first.text != second->text;
    }
    std::cout << json.dump() << "\n";
  }

  GenerateTextOptions settings_;
  bool is_chat_;
  bool json_;
  std::deque<GenerateModel> models_;
  int64_t n_asked_ = 0;      ///< number of prompts
  int64_t n_different_ = 0;  ///< number of rows
};

/// Answers line by line until the input ends. At a terminal, the user can try again after an error.
void ask_lines(GenerateSession& session, bool is_terminal) {
  const auto invite = [&] {
    if (is_terminal) std::cout << "> " << std::flush;
  };
  invite();
  for (std::string line; read_line(std::cin, line); invite()) {
    if (is_terminal && line.empty()) continue;
    try {
      session.ask({line}, is_terminal ? GenerateSession::Echo::kNone : GenerateSession::Echo::kPrompt);
    } catch (const Error& error) {
      if (!is_terminal) throw;
      log_error(error.what());
    }
  }
  if (is_terminal) std::cout << "\n";
}

ExitCode run_generate(const GenerateArguments& arguments, const Output& output) {
  begin(output);
  // a terminal gets control characters in visible form; a file or another program gets the exact text
  std::optional<ExactStream> exact;
  if (isatty(STDOUT_FILENO) != 1) exact.emplace(std::cout);
  const RunOptions run = parse_run(arguments.run);
  const std::vector<std::string> prompts = read_prompts(arguments);
  GenerateSession session(arguments, output);
  session.load(prompts, run);
  if (arguments.has_prompts())
    session.ask(prompts, GenerateSession::Echo::kPrompt);
  else
    ask_lines(session, !output.json && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1);
  if (session.compares() && !output.json) std::cout << session.comparison() << "\n";
  return ExitCode::kOk;
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<GenerateArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(
      app, "generate",
      "Let a model continue texts. Without prompts, they are read line by line from a terminal (Ctrl-D ends) or a "
      "pipe.\n"
      "  lancet generate --model out/demo --prompt \"The capital of France is\"\n"
      "  lancet generate --model DIR --beside out/demo --prompts prompts.txt --temperature 0.8 --top-p 0.9 --seed 1");
  add_option(command, "--model", arguments->model, "Model folder").required().type("DIR");
  add_option(command, "--beside", arguments->beside,
             "A second model folder, whose answers are shown beside those of the first")
      .type("DIR");
  add_option(command, "--prompt", arguments->prompts, "Text to continue; may be given several times").repeats();
  add_option(command, "--prompts", arguments->prompts_file, "File of prompts, one per line").type("FILE");
  arguments->asked.add(command, GenerateSpec::kAll);
  const Argument chat = add_flag(command, "--chat", arguments->chat.from_model,
                                 "Ask the prompts as a user's messages, with the model's own chat template");
  add_option(command, "--chat-template", arguments->chat.by_hand, "Put each prompt into this text, in the place of {}")
      .excludes(chat);
  arguments->run.add(command, {&RunSpec::kDType, &RunSpec::kQuantiseBase, &RunSpec::kDevices});
  add_output_options(command, *output, "Print one JSON object per line, for each answer");
  on_choice(command, action, [=] { return run_generate(*arguments, *output); });
}

}  // namespace lancet::cli
