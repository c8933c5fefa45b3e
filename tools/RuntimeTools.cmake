# The tools that know nothing but the runtime: built with the compiler, and by `cmake -S runtime` alone.
add_library(SprigToolSupport STATIC
  ${SPRIG_SOURCE_DIR}/tools/Support/Html.cpp
  ${SPRIG_SOURCE_DIR}/tools/Support/Json.cpp
  ${SPRIG_SOURCE_DIR}/tools/Support/Options.cpp
)
target_include_directories(SprigToolSupport PUBLIC ${SPRIG_SOURCE_DIR})
target_link_libraries(SprigToolSupport PUBLIC SprigRuntime)
target_compile_options(SprigToolSupport PRIVATE -ffunction-sections -fdata-sections)

function(sprig_runtime_tool name)
  list(TRANSFORM ARGN PREPEND ${SPRIG_SOURCE_DIR}/tools/)
  add_executable(${name} ${SPRIG_SOURCE_DIR}/tools/${name}.cpp ${ARGN})
  target_link_libraries(${name} PRIVATE SprigToolSupport)
  target_compile_options(${name} PRIVATE -ffunction-sections -fdata-sections)
  target_link_options(${name} PRIVATE -Wl,--gc-sections)
endfunction()

sprig_runtime_tool(llm-bench Bench/Measure.cpp Bench/Startup.cpp)
add_library(SprigInspect STATIC
  ${SPRIG_SOURCE_DIR}/tools/Inspect/Report.cpp
  ${SPRIG_SOURCE_DIR}/tools/Inspect/Summary.cpp)
target_link_libraries(SprigInspect PUBLIC SprigToolSupport)
sprig_runtime_tool(llm-inspect)
target_link_libraries(llm-inspect PRIVATE SprigInspect)
sprig_runtime_tool(llm-run Run/Arguments.cpp Run/Devices.cpp Run/Report.cpp)
