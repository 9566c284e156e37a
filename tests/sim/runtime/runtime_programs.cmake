# Programs compiled by nvcc, for the tests of the CUDA runtime: runtime/NAME in the folder of the tests'
# build. A program has no sanitizer in it, and so cannot load libraries that have.
target_compile_definitions(sim_tests PRIVATE
  TILEWRIGHT_SIM_FOLDER="${CMAKE_BINARY_DIR}/lib/sim"
  TILEWRIGHT_RUNTIME_PROGRAMS="${CMAKE_CURRENT_BINARY_DIR}/runtime")
add_dependencies(sim_tests tilewright_simulator_runtime)
find_program(TILEWRIGHT_NVCC_OF_PROGRAMS nvcc HINTS ${TILEWRIGHT_NVCC} PATHS /usr/local/cuda/bin
             ${PROJECT_SOURCE_DIR}/build/cuda/nvidia/cu13/bin NO_CACHE)
if(TILEWRIGHT_NVCC)
  set(TILEWRIGHT_NVCC_OF_PROGRAMS ${TILEWRIGHT_NVCC})
endif()
if(NOT TILEWRIGHT_NVCC_OF_PROGRAMS OR TILEWRIGHT_SANITIZE)
  return()
endif()

function(runtime_program NAME SOURCE)
  set(program ${CMAKE_CURRENT_BINARY_DIR}/runtime/${NAME})
  add_custom_command(OUTPUT ${program}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/runtime
    COMMAND ${TILEWRIGHT_NVCC_OF_PROGRAMS} -std=c++17 ${ARGN} -o ${program} ${SOURCE}
    DEPENDS ${SOURCE} COMMENT "Compiling ${NAME} with nvcc" VERBATIM)
  set_property(GLOBAL APPEND PROPERTY tilewright_runtime_programs ${program})
endfunction()

set(ptx -gencode arch=compute_90a,code=compute_90a)
set(sample ${PROJECT_SOURCE_DIR}/tests/sim/runtime/program.cu)
set(example ${PROJECT_SOURCE_DIR}/examples/vector_add.cu)
runtime_program(program ${sample} -cudart shared ${ptx})
runtime_program(program_per_thread ${sample} -cudart shared ${ptx} -default-stream per-thread)
runtime_program(program_uncompressed ${sample} -cudart shared ${ptx} --compress-mode=none)
runtime_program(vector_add ${example} -cudart shared ${ptx} -lineinfo)
runtime_program(vector_add_machine_code ${example} -cudart shared -gencode arch=compute_90a,code=sm_90a)
runtime_program(vector_add_static ${example} ${ptx})
# The same under a name that only the shared runtime has.
set(library ${PROJECT_SOURCE_DIR}/tests/sim/runtime/library.cu)
runtime_program(libstatic.so ${library} ${ptx} -shared -Xcompiler -fPIC)
runtime_program(libcudart.so.12 ${library} ${ptx} -shared -Xcompiler -fPIC)
get_property(programs GLOBAL PROPERTY tilewright_runtime_programs)
add_custom_target(runtime_programs DEPENDS ${programs})
add_dependencies(sim_tests runtime_programs)
target_compile_definitions(sim_tests PRIVATE TILEWRIGHT_HAS_RUNTIME_PROGRAMS)
