# Precompiled headers: what most files of a part include is parsed once. A header is reusable only under
# the flags that made it, so programs take -fPIC as well.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
set(SPRIG_PCH_DIR ${CMAKE_CURRENT_LIST_DIR}/Pch)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # Makes the precompiled header a function of its inputs, so that ccache can keep it.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

# sprig_pch(NAME [LINK lib ...] [DEPENDS target ...]): the headers named by cmake/Pch/NAME.h, compiled once.
# Targets take them with target_precompile_headers(TARGET REUSE_FROM NAME).
function(sprig_pch name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  file(WRITE ${PROJECT_BINARY_DIR}/cmake/${name}.cpp "")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/cmake/${name}.cpp)
  target_precompile_headers(${name} PRIVATE ${SPRIG_PCH_DIR}/${name}.h)
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()
