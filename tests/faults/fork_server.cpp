// Starts the program under test once and forks it for every run that is asked for: its libraries are loaded, and no
// thread is there yet. With LANCET_FAULTS_SERVE set, the program's main waits on its standard input for runs, lines of
//   NAME=value       a variable of the run's environment
//   @folder          where it runs; its outputs go to @folder.out and @folder.err
//   argument         of the command line, each on a line of its own
// and an empty line that starts it. Answers "pid <process>" and "ended <wait status>".
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "fault_settings.h"

namespace {

using Main = int (*)(int, char**, char**);

struct Order {
  std::vector<std::string> variables, arguments;
  std::string folder;
};

bool read_order(Order& order) {
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.empty()) return true;
    if (line.starts_with('@'))
      order.folder = line.substr(1);
    else if (line.starts_with("LANCET_"))
      order.variables.push_back(line);
    else
      order.arguments.push_back(line);
  }
  return false;
}

void send_to(int descriptor, const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0 || ::dup2(file, descriptor) < 0) std::abort();
  ::close(file);
}

[[noreturn]] void run(Main real_main, char* program, Order& order) {
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::close(nothing);
  send_to(STDOUT_FILENO, order.folder + ".out");
  send_to(STDERR_FILENO, order.folder + ".err");
  if (::chdir(order.folder.c_str()) != 0) std::abort();
  std::vector<char*> arguments{program};
  for (std::string& argument : order.arguments) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  ::unsetenv("LANCET_FAULTS_SERVE");
  for (std::string& variable : order.variables) ::putenv(variable.data());
  read_fault_settings();
  const int code = real_main(static_cast<int>(arguments.size()) - 1, arguments.data(), environ);
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(code);  // without the end of the libraries, which takes longer than the run
}

Main program_main = nullptr;

int serve(int n_arguments, char** arguments, char** environment) {
  if (std::getenv("LANCET_FAULTS_SERVE") == nullptr) return program_main(n_arguments, arguments, environment);
  for (Order order; read_order(order); order = {}) {
    const pid_t child = ::fork();
    if (child == 0) run(program_main, arguments[0], order);
    std::printf("pid %d\n", child);
    std::fflush(stdout);
    int status = 0;
    ::waitpid(child, &status, 0);
    std::printf("ended %d\n", status);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

/// What a program's first instructions call.
extern "C" int __libc_start_main(Main real_main, int n_arguments, char** arguments, void (*first)(), void (*last)(),
                                 void (*of_loader)(), void* stack_end) {
  static const auto start = next(&__libc_start_main, "__libc_start_main");
  program_main = real_main;
  return start(serve, n_arguments, arguments, first, last, of_loader, stack_end);
}
