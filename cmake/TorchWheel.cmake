# Imported targets made directly from the pip wheels of torch and NVIDIA. They need no find_package(Torch), and so no CUDA toolkit.
#   TorchWheel::torch   everything: c10, torch_cpu, c10_cuda, torch_cuda (the wheel runs on machines without a GPU too)
if(NOT Python3_EXECUTABLE)
  set(Python3_EXECUTABLE "${CMAKE_SOURCE_DIR}/.venv/bin/python")
endif()
# While a wheel is built, Python may not see its packages, but torch is in their folder anyway. LANCET_TORCH names another folder.
set(LANCET_TORCH "" CACHE PATH "Folder of the torch package; empty: that of Python3_EXECUTABLE")
if(LANCET_TORCH)
  set(TORCH_WHEEL_DIR "${LANCET_TORCH}")
else()
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -c "import importlib.util as u, os, sysconfig
found = u.find_spec('torch')
print(os.path.dirname(found.origin) if found else os.path.join(sysconfig.get_path('purelib'), 'torch'))"
    OUTPUT_VARIABLE TORCH_WHEEL_DIR OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT EXISTS "${TORCH_WHEEL_DIR}/version.py")
  message(FATAL_ERROR "torch is not installed for ${Python3_EXECUTABLE}: run `make setup`, or pass -DPython3_EXECUTABLE=...")
endif()
file(STRINGS "${TORCH_WHEEL_DIR}/version.py" _version REGEX "^__version__ *=")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" TORCH_WHEEL_VERSION "${_version}")
if(NOT TORCH_WHEEL_VERSION VERSION_EQUAL 2.11.0)
  message(FATAL_ERROR "torch ${TORCH_WHEEL_VERSION} found in ${TORCH_WHEEL_DIR}, expected 2.11.0: run `make setup`")
endif()
if(NOT EXISTS "${TORCH_WHEEL_DIR}/lib/libtorch_cuda.so")
  message(FATAL_ERROR "torch in ${TORCH_WHEEL_DIR} is the wheel for CPUs only, expected the one with CUDA, which runs without a GPU too: "
                      "remove that environment and run `make setup`")
endif()
get_filename_component(_site "${TORCH_WHEEL_DIR}/.." ABSOLUTE)

add_library(TorchWheel::torch INTERFACE IMPORTED)
target_include_directories(TorchWheel::torch SYSTEM INTERFACE
  "${TORCH_WHEEL_DIR}/include" "${TORCH_WHEEL_DIR}/include/torch/csrc/api/include"
  "${_site}/nvidia/cu13/include" "${_site}/nvidia/nccl/include")
# Without NDEBUG, classes would have another layout than in the wheel.
target_compile_definitions(TorchWheel::torch INTERFACE NDEBUG USE_DISTRIBUTED USE_CUDA USE_C10D_NCCL)
target_link_libraries(TorchWheel::torch INTERFACE
  "-Wl,--no-as-needed" "${TORCH_WHEEL_DIR}/lib/libtorch_cuda.so" "${TORCH_WHEEL_DIR}/lib/libc10_cuda.so"
  "${TORCH_WHEEL_DIR}/lib/libtorch_cpu.so" "${TORCH_WHEEL_DIR}/lib/libc10.so" "-Wl,--as-needed"
  "${TORCH_WHEEL_DIR}/lib/libgomp.so.1")  # the wheel's own, for lancet's files that are compiled with -fopenmp
file(GLOB _nvidia_libs LIST_DIRECTORIES true "${_site}/nvidia/*/lib")
foreach(_dir IN LISTS _nvidia_libs)
  target_link_options(TorchWheel::torch INTERFACE "LINKER:-rpath-link,${_dir}")
endforeach()
target_link_options(TorchWheel::torch INTERFACE "LINKER:--allow-shlib-undefined")
if(NOT SKBUILD)  # a wheel is installed in other places
  target_link_options(TorchWheel::torch INTERFACE "LINKER:-rpath,${TORCH_WHEEL_DIR}/lib")
endif()
