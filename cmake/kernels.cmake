# Compiles src/kernels/**/*.cu to PTX and cubin for the targets each file names, and embeds both.
#
# A kernel file says what it is for in a line `// targets: sm_90a sm_100a`. PTX is what the simulator
# runs and what is embedded for inspection; the cubin is assembled from that same PTX. Both are embedded
# packed by zlib, a tenth of their size. `ptxas -v` is
# kept: tools/embed_kernels.py reads registers, spills and shared memory from it into the table that
# `tilewright kernels` prints and tests/device/ptxas_facts_test.cpp compares with the baseline.

set(TILEWRIGHT_KERNELS_FROM "" CACHE PATH
    "Folder `kernels` of another build whose images are embedded instead of compiling them again")

if(TILEWRIGHT_KERNELS AND NOT TILEWRIGHT_KERNELS_FROM)
  find_program(TILEWRIGHT_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin ENV CUDA_PATH PATH_SUFFIXES bin
               PATHS /usr/local/cuda/bin DOC "nvcc 13.0 or newer")
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
      -I ${PROJECT_SOURCE_DIR}/src)
endif()

# The registry (in device) needs the table, which needs nothing.
function(tilewright_kernel_library)
  add_library(tilewright_kernels STATIC ${ARGN})
  target_link_libraries(tilewright_kernels PUBLIC tilewright_options)
  target_link_libraries(tilewright_device PUBLIC tilewright_kernels)
endfunction()

# Library tilewright_kernels: all images and the table of them (device/kernel_registry.h).
function(tilewright_kernels)
  if(NOT TILEWRIGHT_KERNELS)
    file(CONFIGURE OUTPUT kernels/table.cpp @ONLY CONTENT
"#include \"device/kernel_registry.h\"
namespace tilewright::device {
std::span<const KernelImage> kernel_images() { return {}; }
const char* kernel_toolkit() { return \"\"; }
}  // namespace tilewright::device
")
    tilewright_kernel_library(${CMAKE_BINARY_DIR}/kernels/table.cpp)
    return()
  endif()
  if(TILEWRIGHT_KERNELS_FROM)
    file(GLOB_RECURSE images ${TILEWRIGHT_KERNELS_FROM}/*.z)
    set_source_files_properties(${TILEWRIGHT_KERNELS_FROM}/images.S PROPERTIES OBJECT_DEPENDS "${images}")
    tilewright_kernel_library(${TILEWRIGHT_KERNELS_FROM}/images.S ${TILEWRIGHT_KERNELS_FROM}/table.cpp)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src/kernels
       ${PROJECT_SOURCE_DIR}/src/kernels/*.cu)
  set(out ${CMAKE_BINARY_DIR}/kernels)
  set(images)
  set(packed)
  set(specs)
  foreach(source ${sources})
    set(path ${PROJECT_SOURCE_DIR}/src/kernels/${source})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(STRINGS ${path} targets REGEX "^// targets: " LIMIT_COUNT 1)
    if(NOT targets)
      message(FATAL_ERROR "src/kernels/${source} has no line `// targets: sm_90a ...`")
    endif()
    string(REGEX REPLACE "^// targets: " "" targets "${targets}")
    separate_arguments(targets)
    string(REGEX REPLACE "\\.cu$" "" stem ${source})
    foreach(target ${targets})
      set(base ${out}/${stem}.${target})
      get_filename_component(folder ${base} DIRECTORY)
      file(MAKE_DIRECTORY ${folder})
      add_custom_command(
        OUTPUT ${base}.ptx
        COMMAND ${TILEWRIGHT_NVCC} ${TILEWRIGHT_NVCC_FLAGS} -arch=${target} -ptx -MD -MF ${base}.d
                -MT ${base}.ptx ${path} -o ${base}.ptx
        DEPENDS ${path} DEPFILE ${base}.d
        COMMENT "nvcc ${source} for ${target}" VERBATIM)
      add_custom_command(
        OUTPUT ${base}.cubin ${base}.ptxas
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/embed_kernels.py assemble
                --ptxas ${TILEWRIGHT_PTXAS} --target ${target} ${base}.ptx
        DEPENDS ${base}.ptx ${PROJECT_SOURCE_DIR}/tools/embed_kernels.py
        COMMENT "ptxas ${source} for ${target}" VERBATIM)
      list(APPEND images ${base}.ptx ${base}.cubin)
      list(APPEND packed ${base}.ptx.z ${base}.cubin.z)
      list(APPEND specs ${stem}.${target})
    endforeach()
  endforeach()
  add_custom_command(
    OUTPUT ${out}/images.S ${out}/table.cpp ${packed}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/embed_kernels.py embed
            --folder ${out} --toolkit ${TILEWRIGHT_NVCC_VERSION} ${specs}
    DEPENDS ${images} ${PROJECT_SOURCE_DIR}/tools/embed_kernels.py
    COMMENT "Embedding kernels" VERBATIM)
  # .incbin is invisible to dependency scanning: the images are named as dependencies of the object.
  set_source_files_properties(${out}/images.S PROPERTIES OBJECT_DEPENDS "${packed}")
  tilewright_kernel_library(${out}/images.S ${out}/table.cpp)
endfunction()
