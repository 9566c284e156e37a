# The simulator: the library `tilewright_sim`, the CUDA driver made of it, lib/sim/libcuda.so.1, and a CUDA
# runtime that uses the driver, lib/sim/libcudart.so.13.

# Instructions and tensor kernels are loops over 32 lanes: they are compiled for speed in every build, for
# processors with AVX2 where there are any. Rows of one register file are read as many types.
set(sim_speed -O3)
if(TILEWRIGHT_FUZZERS)
  set(sim_speed -O1)  # hostile programs are short; what counts is the time to build it
elseif(TILEWRIGHT_SANITIZE)
  set(sim_speed -Og)  # -O3 takes four times as long to build and makes the tests a fifth faster
endif()
set(sim_fast_options ${sim_speed} -fno-strict-aliasing -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(sim_x86_options -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt -mpopcnt)
endif()

function(tilewright_simulator)
  set(folder ${PROJECT_SOURCE_DIR}/src/sim)
  file(GLOB sources CONFIGURE_DEPENDS
       ${folder}/*.cpp ${folder}/host/*.cpp ${folder}/model/*.cpp ${folder}/parse/*.cpp ${folder}/trace/*.cpp)
  set(fast_sources)
  foreach(room state event memory async exec compile check report time)
    file(GLOB_RECURSE room_sources CONFIGURE_DEPENDS ${folder}/${room}/*.cpp)
    list(APPEND fast_sources ${room_sources})
  endforeach()
  # Instructions of a folder are compiled together; of the two largest, in two parts; small folders with a neighbour.
  # wmma.cpp has names of mma_sync.cpp for the same things of its own, and is alone.
  file(GLOB_RECURSE insn_sources CONFIGURE_DEPENDS ${folder}/insn/*.cpp)
  foreach(source ${insn_sources})
    get_filename_component(room ${source} DIRECTORY)
    get_filename_component(room ${room} NAME)
    if(source MATCHES "/scalar/(convert|float|half|special)" OR source MATCHES "/tensor/(wgmma|mma_sync)")
      string(APPEND room _second)
    elseif(room STREQUAL "control")
      set(room async)
    elseif(room STREQUAL "insn")
      set(room memory)
    endif()
    if(NOT source MATCHES "/wmma.cpp$")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${room})
    endif()
  endforeach()
  file(GLOB tensor_sources CONFIGURE_DEPENDS ${folder}/tensor/*.cpp)
  add_library(tilewright_sim_fast OBJECT ${fast_sources})
  tilewright_unity(tilewright_sim_fast 26)
  add_library(tilewright_sim_insn OBJECT ${insn_sources})
  set_target_properties(tilewright_sim_insn PROPERTIES UNITY_BUILD ${TILEWRIGHT_UNITY} UNITY_BUILD_MODE GROUP)
  foreach(part tilewright_sim_fast tilewright_sim_insn)
    target_compile_options(${part} PRIVATE ${sim_fast_options} ${sim_x86_options})
  endforeach()
  add_library(tilewright_sim_tensor OBJECT ${tensor_sources})
  target_compile_options(tilewright_sim_tensor PRIVATE ${sim_fast_options})
  foreach(source ${tensor_sources})
    if(source MATCHES "/(matrix|shared)_descriptor.cpp$")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP walk)
    elseif(NOT source MATCHES "/tile_kernel_")  # each is for processors of its own
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP tiles)
    endif()
  endforeach()
  set_target_properties(tilewright_sim_tensor PROPERTIES UNITY_BUILD ${TILEWRIGHT_UNITY} UNITY_BUILD_MODE GROUP)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set_source_files_properties(${folder}/tensor/tile_kernel_avx2.cpp PROPERTIES
      SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "${sim_x86_options}")
    set_source_files_properties(${folder}/tensor/tile_kernel_avx512.cpp PROPERTIES
      SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS
      "${sim_x86_options};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512")
  endif()
  add_library(tilewright_sim STATIC ${sources} $<TARGET_OBJECTS:tilewright_sim_fast>
    $<TARGET_OBJECTS:tilewright_sim_insn> $<TARGET_OBJECTS:tilewright_sim_tensor>)
  tilewright_unity(tilewright_sim)
  foreach(part tilewright_sim_fast tilewright_sim_insn tilewright_sim_tensor)
    tilewright_precompiled(${part})
  endforeach()
  foreach(part tilewright_sim_fast tilewright_sim_insn tilewright_sim_tensor tilewright_sim)
    target_link_libraries(${part} PUBLIC
      tilewright_options tilewright_base tilewright_formats tilewright_arch)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      target_compile_definitions(${part} PRIVATE TILEWRIGHT_X86_KERNELS)
    endif()
  endforeach()

  # The driver. It exports the driver's names and nothing else, and calls its own functions, whatever other
  # library of the same process exports the same names.
  file(GLOB_RECURSE driver_sources CONFIGURE_DEPENDS ${folder}/driver/*.cpp)
  add_library(tilewright_simulator SHARED ${driver_sources} ${folder}/driver/aliases.ld)
  set_source_files_properties(${folder}/driver/aliases.ld PROPERTIES EXTERNAL_OBJECT ON)
  target_link_libraries(tilewright_simulator PRIVATE tilewright_sim ${CMAKE_DL_LIBS})
  target_link_options(tilewright_simulator PRIVATE
    -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,-z,nodelete
    -Wl,--version-script=${folder}/driver/exports.map)
  if(NOT TILEWRIGHT_SANITIZE)  # whose functions are in the program
    target_link_options(tilewright_simulator PRIVATE -Wl,-z,defs)
  endif()
  tilewright_unity(tilewright_simulator)
  tilewright_optimize(tilewright_simulator -O1)
  tilewright_precompiled(tilewright_simulator)
  set_target_properties(tilewright_simulator PROPERTIES
    PREFIX "" OUTPUT_NAME libcuda SUFFIX .so.1 NO_SONAME ON
    LINK_DEPENDS "${folder}/driver/exports.map;${folder}/driver/aliases.ld"
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/sim)

  # The runtime, for programs compiled by nvcc. Symbols have the version that such programs demand.
  file(GLOB runtime_sources CONFIGURE_DEPENDS ${folder}/runtime/*.cpp ${folder}/runtime/*.S)
  add_library(tilewright_simulator_runtime SHARED ${runtime_sources} ${folder}/runtime/aliases.ld)
  set_source_files_properties(${folder}/runtime/aliases.ld PROPERTIES EXTERNAL_OBJECT ON)
  target_link_libraries(tilewright_simulator_runtime PRIVATE tilewright_options tilewright_simulator)
  target_include_directories(tilewright_simulator_runtime PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_options(tilewright_simulator_runtime PRIVATE
    -Wl,-soname,libcudart.so.13 -Wl,-Bsymbolic -Wl,--version-script=${folder}/runtime/exports.map)
  tilewright_unity(tilewright_simulator_runtime 8)
  tilewright_optimize(tilewright_simulator_runtime -O1)
  set_target_properties(tilewright_simulator_runtime PROPERTIES
    PREFIX "" OUTPUT_NAME libcudart SUFFIX .so.13 NO_SONAME ON
    BUILD_RPATH "\$ORIGIN" BUILD_WITH_INSTALL_RPATH OFF
    LINK_DEPENDS "${folder}/runtime/exports.map;${folder}/runtime/aliases.ld"
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/sim)

  # Hooks for programs in Python.
  foreach(file tilewright_simulator sitecustomize)
    configure_file(${folder}/python/${file}.py ${CMAKE_BINARY_DIR}/lib/sim/python/${file}.py COPYONLY)
  endforeach()
endfunction()
