// What the two halves of the preloaded library share.
#pragma once

#include <dlfcn.h>

/// Takes LANCET_FAULTS_* from the environment; calls count from now on.
void read_fault_settings();

/// The function that would be called if this library were not there.
template <typename F>
F* next(F* /*type*/, const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}
