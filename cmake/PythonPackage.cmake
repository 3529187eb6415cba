# The Python package: the extension module _lancet from src/python, beside the files of python/lancet and the program.
#   In the build tree build/python/lancet can be imported; scikit-build-core installs the same files into a wheel.
# The module is for the Python of Python_EXECUTABLE. torch is the wheel of Python3_EXECUTABLE (TorchWheel), which may be another Python,
# because the binary uses only torch's C++ libraries.
if(NOT Python_EXECUTABLE)
  set(Python_EXECUTABLE "${Python3_EXECUTABLE}")
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
# CMake has a component for the stable ABI from 3.26 on; before that, this is a name for the same headers, and nothing is linked.
if(NOT TARGET Python::SABIModule)
  add_library(Python::SABIModule INTERFACE IMPORTED)
  set_target_properties(Python::SABIModule PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${Python_INCLUDE_DIRS}")
  set(Python_SOSABI abi3)
endif()
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_DIR
                OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _nanobind_missing)
if(_nanobind_missing)
  message(FATAL_ERROR "nanobind is not installed for ${Python_EXECUTABLE}: run `make setup-test`, or leave LANCET_PYTHON off")
endif()
find_package(nanobind CONFIG REQUIRED PATHS "${nanobind_DIR}" NO_DEFAULT_PATH)

file(GLOB _python_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/python/*.cpp")
nanobind_add_module(lancet_python STABLE_ABI NB_STATIC NOMINSIZE NB_SUPPRESS_WARNINGS ${_python_sources})
compile_together(lancet_python ${_python_sources})
foreach(_nanobind nanobind-static nanobind-static-abi3)  # nanobind's own files are compiled together, too, because each includes all headers of Python and nanobind
  if(TARGET ${_nanobind})
    set_target_properties(${_nanobind} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
endforeach()
target_include_directories(lancet_python PRIVATE src/python)
# python: the extension module of the Python package; the modules that people import are in `python/lancet`
target_link_libraries(lancet_python PRIVATE lancet_session lancet_studies lancet_erasure lancet_diff lancet_push)
# Linked before torch: tests/cli/test_link_order.py says why.
list(GET SENTENCEPIECE_LINK_LIBRARIES 0 _sentencepiece)
target_link_options(lancet_python PRIVATE "LINKER:--push-state,--no-as-needed,${_sentencepiece},--pop-state")
target_compile_options(lancet_python PRIVATE ${LANCET_WARNINGS} ${LANCET_CALLS_TORCH})
# The process has other libraries, so the symbols of ours are hidden.
target_link_options(lancet_python PRIVATE "LINKER:--exclude-libs,ALL")

set(_package "${CMAKE_BINARY_DIR}/python/lancet")
set_target_properties(lancet_python PROPERTIES OUTPUT_NAME _lancet LIBRARY_OUTPUT_DIRECTORY "${_package}")
nanobind_add_stub(lancet_python_stub MODULE _lancet OUTPUT "${_package}/_lancet.pyi" PYTHON_PATH "${_package}"
                  DEPENDS lancet_python)

# The Python files are links, so that a change takes effect at once.
file(GLOB _python_files RELATIVE "${CMAKE_SOURCE_DIR}/python/lancet" CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/python/lancet/*.py"
     "${CMAKE_SOURCE_DIR}/python/lancet/compat/*.py" "${CMAKE_SOURCE_DIR}/python/lancet/py.typed")
file(MAKE_DIRECTORY "${_package}/compat")
foreach(_file IN LISTS _python_files)
  file(CREATE_LINK "${CMAKE_SOURCE_DIR}/python/lancet/${_file}" "${_package}/${_file}" SYMBOLIC)
endforeach()
# Read before the module is loaded, because a module that was built with another torch would crash.
file(CONFIGURE OUTPUT "${_package}/_built_with.py" CONTENT "TORCH = \"${TORCH_WHEEL_VERSION}\"\n")
file(CREATE_LINK "${CMAKE_SOURCE_DIR}/python/hook/lancet_program.py" "${CMAKE_BINARY_DIR}/python/lancet_program.py" SYMBOLIC)
file(MAKE_DIRECTORY "${_package}/bin")
file(CREATE_LINK "${CMAKE_BINARY_DIR}/lancet" "${_package}/bin/lancet" SYMBOLIC)

# In a wheel the program and the module find torch beside the package.
if(SKBUILD)
  set_target_properties(lancet_python PROPERTIES INSTALL_RPATH "$ORIGIN/../torch/lib")
  set_target_properties(lancet PROPERTIES INSTALL_RPATH "$ORIGIN/../../torch/lib")
  install(TARGETS lancet_python LIBRARY DESTINATION lancet COMPONENT python)
  install(TARGETS lancet RUNTIME DESTINATION lancet/bin COMPONENT python)
  # Files beside the package: the entry point for lm-evaluation-harness, and the command.
  install(FILES python/hook/lancet_lm_eval.pth python/hook/lancet_lm_eval_hook.py python/hook/lancet_program.py
          DESTINATION . COMPONENT python)
  install(FILES "${_package}/_lancet.pyi" "${_package}/_built_with.py" DESTINATION lancet COMPONENT python)
endif()
