// How long the threads of OpenMP (torch's and ours) spin at a barrier before they sleep: kSpins turns, some tenths of a
// ms. libgomp's default is some milliseconds of spinning, which takes computing time from other programs, and from the
// thread that the others wait for. libgomp reads the environment when it is loaded, before main() and before any
// constructor of this program, and has no function for it. So the program sets the variable and starts itself again,
// before the libraries are initialised, because that takes time. Settings of the user are not changed.
#include <alloca.h>
#include <linux/limits.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace {

constexpr const char* kSpins = "GOMP_SPINCOUNT=20000";

/// Variables with which a user sets how threads wait.
constexpr const char* kChosen[] = {"GOMP_SPINCOUNT=", "OMP_WAIT_POLICY=", "KMP_"};

bool is_chosen(char* const* environment) {
  for (; *environment != nullptr; ++environment)
    for (const char* const variable : kChosen)
      if (std::strncmp(*environment, variable, std::strlen(variable)) == 0) return true;
  return false;
}

/// Runs when the libraries are loaded but not initialised; the C library's environ and heap are not ready either.
void choose_waiting(int /*argc*/, char** arguments, char** environment) {
  const bool is_started_by_loader = ::getauxval(AT_BASE) == 0;  // `ld.so lancet ...`: the program is ld.so itself
  if (is_started_by_loader || is_chosen(environment)) return;
  size_t count = 0;
  while (environment[count] != nullptr) ++count;
  auto** changed = static_cast<char**>(alloca((count + 2) * sizeof(char*)));
  std::memcpy(changed, environment, count * sizeof(char*));
  changed[count] = const_cast<char*>(kSpins);
  changed[count + 1] = nullptr;
  char program[PATH_MAX] = {};  // the program's own name, which `ps` shows
  if (::readlink("/proc/self/exe", program, sizeof(program) - 1) <= 0) return;
  ::execve(program, arguments, changed);
  // the start failed: this process continues, with threads that spin longer
}

}  // namespace

__attribute__((section(".preinit_array"), used)) void (*const lancet_choose_waiting)(int, char**,
                                                                                     char**) = choose_waiting;
