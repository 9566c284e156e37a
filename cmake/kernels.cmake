# Compiles src/kernels/**/*.cu, and tests/kernels/**/*.cu for the tests, to PTX and cubin for the targets each file
# names, and embeds both.
#
# A kernel file says what it is for in a line `// targets: sm_90a sm_100f`. PTX is what the simulator
# runs and what is embedded for inspection; the cubin is assembled from that same PTX. Both are embedded
# packed by zlib, a tenth of their size. `ptxas -v` is kept: tools/embed_kernels.py reads registers, spills and shared memory from it into the table that
# `tilewright kernels` prints and tests/device/ptxas_facts_test.cpp compares with the baseline.

set(TILEWRIGHT_KERNELS_FROM "" CACHE PATH
    "Folder `kernels` of another build whose images are embedded instead of compiling them again")

if(TILEWRIGHT_KERNELS AND NOT TILEWRIGHT_KERNELS_FROM)
  find_program(TILEWRIGHT_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin ENV CUDA_PATH PATH_SUFFIXES bin
               PATHS /usr/local/cuda/bin ${PROJECT_SOURCE_DIR}/build/cuda/nvidia/cu13/bin  # where ./run puts it
               DOC "nvcc 13.0 or newer")
  if(NOT TILEWRIGHT_NVCC)
    message(FATAL_ERROR "nvcc not found. Run ./run (it fetches one), install the CUDA toolkit 13.0 or newer, "
                        "or configure with -DTILEWRIGHT_KERNELS=OFF to build without kernels.")
  endif()
  execute_process(COMMAND ${TILEWRIGHT_NVCC} --version OUTPUT_VARIABLE nvcc_text RESULT_VARIABLE nvcc_failed)
  string(REGEX MATCH "release ([0-9]+\\.[0-9]+), V([0-9.]+)" nvcc_release "${nvcc_text}")
  set(TILEWRIGHT_NVCC_VERSION "${CMAKE_MATCH_2}")
  if(nvcc_failed OR NOT TILEWRIGHT_NVCC_VERSION OR TILEWRIGHT_NVCC_VERSION VERSION_LESS 13.0)
    message(FATAL_ERROR "${TILEWRIGHT_NVCC} is version '${TILEWRIGHT_NVCC_VERSION}'; 13.0 or newer is needed. "
                        "Point -DTILEWRIGHT_NVCC at a newer one, or delete the cache and run ./run.")
  endif()
  message(STATUS "nvcc ${TILEWRIGHT_NVCC_VERSION}: ${TILEWRIGHT_NVCC}")

  # ptxas stands beside the nvcc that runs; a wrapper script may be elsewhere, so ask nvcc.
  execute_process(COMMAND ${TILEWRIGHT_NVCC} --dryrun -arch=sm_90 -x cu /dev/null -cubin -o /dev/null
                  ERROR_VARIABLE dryrun OUTPUT_QUIET)
  string(REGEX MATCH "_HERE_=([^\n]+)" here "${dryrun}")
  find_program(TILEWRIGHT_PTXAS ptxas HINTS ${CMAKE_MATCH_1} NO_DEFAULT_PATH)
  if(NOT TILEWRIGHT_PTXAS)
    message(FATAL_ERROR "ptxas not found beside ${TILEWRIGHT_NVCC} (looked in '${CMAKE_MATCH_1}')")
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)

  set(TILEWRIGHT_NVCC_FLAGS -std=c++20 -O3 --expt-relaxed-constexpr -lineinfo -Werror all-warnings
      -I ${PROJECT_SOURCE_DIR}/src -I ${PROJECT_SOURCE_DIR}/tests)
endif()

# Whoever links the device module as a static library links one table of kernels (device/kernel_registry.h) beside it:
# libtilewright.so has that of the kernels that ship; tests and what else needs the kernels of tests/kernels link
# tilewright_test_kernels, whose table has both; the tool takes the library's (cli/tool/library_kernels.cpp).
function(tilewright_kernel_libraries FOLDER)
  set(public ${PROJECT_SOURCE_DIR}/src/device/public_kernels.cpp)
  add_library(tilewright_kernel_images OBJECT ${FOLDER}/images.S)
  add_library(tilewright_kernels OBJECT ${FOLDER}/table.cpp ${public})
  add_library(tilewright_kernels_and_tests OBJECT ${FOLDER}/test_images.S ${FOLDER}/test_table.cpp ${public})
  foreach(library tilewright_kernels tilewright_kernels_and_tests)
    target_link_libraries(${library} PRIVATE tilewright_options tilewright_base)
    target_compile_options(${library} PRIVATE -O0)  # tables, filled once: -O3 compiles ten times as long
  endforeach()
  add_library(tilewright_test_kernels INTERFACE)
  target_sources(tilewright_test_kernels INTERFACE
    $<TARGET_OBJECTS:tilewright_kernel_images> $<TARGET_OBJECTS:tilewright_kernels_and_tests>)
  target_link_libraries(tilewright_test_kernels INTERFACE tilewright_device)
endfunction()

# Sets NAME_specs to the STEM.TARGET of all .cu files below FOLDER, and adds the commands that compile them.
function(tilewright_compile_kernels FOLDER OUT NAME)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/${FOLDER}
       ${PROJECT_SOURCE_DIR}/${FOLDER}/*.cu)
  set(specs)
  foreach(source ${sources})
    set(path ${PROJECT_SOURCE_DIR}/${FOLDER}/${source})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(STRINGS ${path} targets REGEX "^// targets: " LIMIT_COUNT 1)
    if(NOT targets)
      message(FATAL_ERROR "${FOLDER}/${source} has no line `// targets: sm_90a ...`")
    endif()
    string(REGEX REPLACE "^// targets: " "" targets "${targets}")
    separate_arguments(targets)
    string(REGEX REPLACE "\\.cu$" "" stem ${source})
    foreach(target ${targets})
      set(base ${OUT}/${stem}.${target})
      get_filename_component(folder ${base} DIRECTORY)
      file(MAKE_DIRECTORY ${folder})
      add_custom_command(
        OUTPUT ${base}.ptx
        COMMAND ${TILEWRIGHT_NVCC} ${TILEWRIGHT_NVCC_FLAGS} -arch=${target} -ptx -MD -MF ${base}.d
                -MT ${base}.ptx ${path} -o ${base}.ptx
        DEPENDS ${path} DEPFILE ${base}.d
        COMMENT "nvcc ${source} for ${target}" VERBATIM)
      add_custom_command(
        OUTPUT ${base}.cubin ${base}.ptxas ${base}.ptx.z ${base}.cubin.z
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/embed_kernels.py assemble
                --ptxas ${TILEWRIGHT_PTXAS} --target ${target} ${base}.ptx
        DEPENDS ${base}.ptx ${PROJECT_SOURCE_DIR}/tools/embed_kernels.py
        COMMENT "ptxas ${source} for ${target}" VERBATIM)
      list(APPEND specs ${stem}.${target})
    endforeach()
  endforeach()
  set(${NAME}_specs ${specs} PARENT_SCOPE)
endfunction()

function(tilewright_kernels)
  if(NOT TILEWRIGHT_KERNELS)
    foreach(table table test_table)
      file(CONFIGURE OUTPUT kernels/${table}.cpp @ONLY CONTENT
"#include \"device/kernel_registry.h\"
namespace tilewright::device {
std::span<const KernelImage> kernel_images() { return {}; }
const char* kernel_toolkit() { return \"\"; }
}  // namespace tilewright::device
")
    endforeach()
    file(CONFIGURE OUTPUT kernels/images.S @ONLY CONTENT "    .section .note.GNU-stack, \"\", @progbits\n")
    file(COPY_FILE ${CMAKE_BINARY_DIR}/kernels/images.S ${CMAKE_BINARY_DIR}/kernels/test_images.S ONLY_IF_DIFFERENT)
    tilewright_kernel_libraries(${CMAKE_BINARY_DIR}/kernels)
    return()
  endif()
  if(TILEWRIGHT_KERNELS_FROM)
    set(from ${TILEWRIGHT_KERNELS_FROM})
    if(NOT EXISTS ${from}/test_images.S)
      message(FATAL_ERROR "TILEWRIGHT_KERNELS_FROM=${from}: it has no test_images.S. Name the folder `kernels` of a "
                          "build of this version, e.g. build/release/kernels.")
    endif()
    file(GLOB_RECURSE images ${from}/*.z)
    set_source_files_properties(${from}/images.S ${from}/test_images.S PROPERTIES OBJECT_DEPENDS "${images}")
    tilewright_kernel_libraries(${from})
    return()
  endif()
  set(out ${CMAKE_BINARY_DIR}/kernels)
  tilewright_compile_kernels(src/kernels ${out} shipped)
  tilewright_compile_kernels(tests/kernels ${out} test)
  # What ships does not wait for the kernels of tests: ./run needs none of them.
  list(TRANSFORM test_specs PREPEND --test= OUTPUT_VARIABLE test_arguments)
  tilewright_embed_kernels(tilewright_embedded_kernels ${out}/images.S ${out}/table.cpp
    SPECS ${shipped_specs} ARGUMENTS ${shipped_specs})
  tilewright_embed_kernels(tilewright_embedded_test_kernels ${out}/test_images.S ${out}/test_table.cpp
    SPECS ${shipped_specs} ${test_specs} ARGUMENTS ${test_arguments} ${shipped_specs})
  tilewright_kernel_libraries(${out})
  # Written once, for all that compile them.
  add_dependencies(tilewright_kernel_images tilewright_embedded_kernels)
  add_dependencies(tilewright_kernels tilewright_embedded_kernels)
  add_dependencies(tilewright_kernels_and_tests tilewright_embedded_test_kernels)
endfunction()

# Target TARGET writes IMAGES and TABLE of the kernels SPECS, each STEM.TARGET.
function(tilewright_embed_kernels TARGET IMAGES TABLE)
  cmake_parse_arguments(ARG "" "" "SPECS;ARGUMENTS" ${ARGN})
  set(out ${CMAKE_BINARY_DIR}/kernels)
  list(TRANSFORM ARG_SPECS PREPEND ${out}/ OUTPUT_VARIABLE bases)
  list(TRANSFORM bases APPEND .ptxas OUTPUT_VARIABLE reports)
  list(TRANSFORM bases APPEND .ptx.z OUTPUT_VARIABLE ptx)
  list(TRANSFORM bases APPEND .cubin.z OUTPUT_VARIABLE cubins)
  add_custom_command(
    OUTPUT ${IMAGES} ${TABLE}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/embed_kernels.py embed
            --folder ${out} --toolkit ${TILEWRIGHT_NVCC_VERSION} ${ARG_ARGUMENTS}
    DEPENDS ${reports} ${PROJECT_SOURCE_DIR}/tools/embed_kernels.py
    COMMENT "Listing kernels in ${TABLE}" VERBATIM)
  add_custom_target(${TARGET} DEPENDS ${IMAGES} ${TABLE})
  # .incbin is invisible to dependency scanning: the images are named as dependencies of the object.
  set_source_files_properties(${IMAGES} PROPERTIES OBJECT_DEPENDS "${ptx};${cubins}")
endfunction()
