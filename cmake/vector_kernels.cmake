# The simulator's tile kernels are one source, compiled for several sets of vector instructions and chosen at run time
# (src/sim/tensor/tile_multiply.cpp). They are optimised in every build type: tests spend their time in them.

set(kernels ${PROJECT_SOURCE_DIR}/src/sim/tensor/tile_kernel)
set(optimised -O3)
set(avx2 -mavx2 -mfma -mf16c)
set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
set_source_files_properties(${kernels}_generic.cpp PROPERTIES COMPILE_OPTIONS "${optimised}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set_source_files_properties(${kernels}_avx2.cpp PROPERTIES COMPILE_OPTIONS "${optimised};${avx2}")
  set_source_files_properties(${kernels}_avx512.cpp PROPERTIES COMPILE_OPTIONS
    "${optimised};${avx512};-mprefer-vector-width=512")
endif()
