# embed_presets(TARGET): puts every data/presets/*.yaml into the target, as src/job/built_in_files.h declares, so that the program
# finds them wherever it lies.
function(embed_presets TARGET)
  set(_source "${CMAKE_BINARY_DIR}/built_in_files.cpp")
  file(GLOB _files CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/data/presets/*.yaml")
  set(_text "#include \"built_in_files.h\"\n\nnamespace lancet {\n\nstd::span<const BuiltInFile> built_in_preset_files() {\n")
  string(APPEND _text "  static constexpr BuiltInFile kFiles[] = {\n")
  foreach(_file IN LISTS _files)
    get_filename_component(_name "${_file}" NAME)
    string(REGEX REPLACE "\\.yaml$" "" _name "${_name}")
    file(READ "${_file}" _content)
    string(APPEND _text "      {\"${_name}\", R\"lancet_preset(${_content})lancet_preset\"},\n")
  endforeach()
  string(APPEND _text "  };\n  return kFiles;\n}\n\n}  // namespace lancet\n")
  file(CONFIGURE OUTPUT "${_source}" CONTENT "${_text}" @ONLY)  # written only when it changes
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_files})
  target_sources(${TARGET} PRIVATE "${_source}")
endfunction()
