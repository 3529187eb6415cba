# lancet_library(NAME [TORCH | TENSORS] [SANITIZED] [SOURCES_IN dir] [DEPENDS targets...])
#   One static library lancet_<NAME> from every source of a folder and its subfolders (src/<NAME> unless SOURCES_IN is given). It has only
#   the dependencies named here: these calls define the direction of dependencies, and tests/lint checks the sources against them.
#   TORCH      the folder computes with torch
#   TENSORS    the folder only passes tensors on, and may use torch in a file or two
#   SANITIZED  also lancet_<NAME>_sanitized, the same sources under AddressSanitizer and UBSan, for the tests
set(LANCET_WARNINGS -Wall -Wextra -Wshadow -Wconversion)
if(LANCET_WERROR)
  list(APPEND LANCET_WARNINGS -Werror)
endif()
# Code that calls torch is optimised less: -O2 takes a third more time to compile, but the program is not faster, because its time is spent
# in torch, or in loops with their own options.
set(LANCET_CALLS_TORCH $<$<CONFIG:RelWithDebInfo>:-O1>)
# Optimising instrumented code takes three times as long as compiling it, and finds nothing more.
set(LANCET_SANITIZE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O0)

set(LANCET_UNITY 64 CACHE STRING "How many files of a room are compiled together; 1: each alone")
# compile_together(TARGET files...): headers and their templates take longer to compile than the code of a file, so the files of a room
# are compiled together. So a name in an anonymous namespace must be unique in the room. A file with its own compile options is compiled alone.
function(compile_together TARGET)
  if(LANCET_UNITY LESS 2)
    return()
  endif()
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  list(LENGTH ARGN _n)
  math(EXPR _groups "(${_n} + ${LANCET_UNITY} - 1) / ${LANCET_UNITY}")
  set(_i 0)
  foreach(_file IN LISTS ARGN)
    math(EXPR _group "${_i} * ${_groups} / ${_n}")  # all of about the same size
    set_source_files_properties("${_file}" PROPERTIES UNITY_GROUP "files_${_group}")
    math(EXPR _i "${_i} + 1")
  endforeach()
endfunction()

function(lancet_library NAME)
  cmake_parse_arguments(ARG "TORCH;TENSORS;SANITIZED" "SOURCES_IN" "DEPENDS" ${ARGN})
  if(NOT ARG_SOURCES_IN)
    set(ARG_SOURCES_IN "src/${NAME}")
  endif()
  file(GLOB _sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${ARG_SOURCES_IN}/*.cpp" "${CMAKE_SOURCE_DIR}/${ARG_SOURCES_IN}/*/*.cpp"
       "${CMAKE_SOURCE_DIR}/${ARG_SOURCES_IN}/*/*/*.cpp")
  set(_targets lancet_${NAME})
  set(LANCET_ROOMS ${LANCET_ROOMS} lancet_${NAME} PARENT_SCOPE)
  if(ARG_SANITIZED AND LANCET_TESTS)
    list(APPEND _targets lancet_${NAME}_sanitized)
    set(LANCET_SANITIZED_ROOMS ${LANCET_SANITIZED_ROOMS} ${NAME} PARENT_SCOPE)
  endif()
  foreach(_target IN LISTS _targets)
    string(REGEX MATCH "_sanitized$" _suffix "${_target}")
    add_library(${_target} STATIC ${_sources})
    compile_together(${_target} ${_sources})
    target_include_directories(${_target} PUBLIC "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:include>"
                               PRIVATE "${CMAKE_SOURCE_DIR}/${ARG_SOURCES_IN}")
    target_compile_features(${_target} PUBLIC cxx_std_20)
    target_compile_options(${_target} PRIVATE ${LANCET_WARNINGS})
    foreach(_dependency IN LISTS ARG_DEPENDS)
      if(_dependency MATCHES "^lancet_")
        target_link_libraries(${_target} PUBLIC ${_dependency}${_suffix})
      else()
        target_link_libraries(${_target} PUBLIC ${_dependency})
      endif()
    endforeach()
    if(_suffix)
      target_compile_options(${_target} PRIVATE ${LANCET_SANITIZE})
      target_link_options(${_target} PUBLIC ${LANCET_SANITIZE})
    endif()
  endforeach()
  if(ARG_TORCH OR ARG_TENSORS)
    calls_torch(lancet_${NAME})
    target_link_libraries(lancet_${NAME} PUBLIC TorchWheel::torch)
  else()
    target_precompile_headers(lancet_${NAME} REUSE_FROM lancet_plain_headers)
  endif()
  if(TARGET lancet_${NAME}_sanitized)
    target_precompile_headers(lancet_${NAME}_sanitized REUSE_FROM lancet_sanitized_headers)
  endif()
endfunction()

# precompiled_headers(NAME [TORCH] [SANITIZED] headers...): a target from which targets with the same options can REUSE_FROM.
function(precompiled_headers NAME)
  cmake_parse_arguments(ARG "TORCH;SANITIZED" "" "" ${ARGN})
  set(_source "${CMAKE_BINARY_DIR}/${NAME}.cpp")
  file(CONFIGURE OUTPUT "${_source}" CONTENT "")  # written only if it does not exist
  add_library(${NAME} STATIC "${_source}")
  if(ARG_TORCH)
    target_link_libraries(${NAME} PUBLIC TorchWheel::torch)
    target_compile_options(${NAME} PRIVATE ${LANCET_CALLS_TORCH})
  endif()
  if(ARG_SANITIZED)
    target_compile_options(${NAME} PRIVATE ${LANCET_SANITIZE})
  endif()
  target_compile_options(${NAME} PRIVATE -fpch-preprocess)
  target_precompile_headers(${NAME} PRIVATE ${ARG_UNPARSED_ARGUMENTS})
endfunction()

# calls_torch(TARGET): compiles it with torch's precompiled headers.
function(calls_torch TARGET)
  target_compile_options(${TARGET} PRIVATE ${LANCET_CALLS_TORCH})
  target_precompile_headers(${TARGET} REUSE_FROM lancet_torch_headers)
endfunction()
