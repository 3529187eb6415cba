#include "errors.h"

#include "lancet/core/error.h"
#include "lancet/runtime/problem.h"

namespace lancet::python {
namespace {

namespace nb = nanobind;

/// Returns the class for lancet's own errors by their type, and for others by the code: exhausted memory, for example,
/// is an error of the machine.
const char* class_of(const std::exception& error, ExitCode code) {
  if (dynamic_cast<const TokenizerError*>(&error) != nullptr) return "TokenizerError";
  switch (code) {
    case ExitCode::kConfig:
      return "ConfigError";
    case ExitCode::kCheckpoint:
      return "CheckpointError";
    case ExitCode::kPlacement:
      return "PlacementError";
    case ExitCode::kNumeric:
      return "NumericError";
    case ExitCode::kCollective:
      return "CollectiveError";
    case ExitCode::kCancelled:
      return "Cancelled";
    case ExitCode::kOk:
    case ExitCode::kInternal:
      return "Error";
  }
  return "Error";
}

void raise(const std::exception& error) {
  const Problem problem = problem_of(error);
  const nb::object type = nb::module_::import_("lancet.errors").attr(class_of(error, problem.code));
  PyErr_SetObject(type.ptr(), to_str(problem.message).ptr());
}

void translate(const std::exception_ptr& error, void* /*payload*/) {
  try {
    std::rethrow_exception(error);
  } catch (const nb::python_error&) {
    throw;
  } catch (const nb::builtin_exception&) {
    throw;
  } catch (const std::exception& known) {
    raise(known);
  }
}

}  // namespace

nb::str to_str(std::string_view text) {
  PyObject* const decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(decoded);
}

void register_errors() { nb::register_exception_translator(translate); }

}  // namespace lancet::python
