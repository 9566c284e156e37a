# The tests of the driver open the library itself; the witness reads the toolkit's header.
add_dependencies(sim_tests tilewright_simulator)
target_compile_definitions(sim_tests PRIVATE
  TILEWRIGHT_SIM_DRIVER="$<TARGET_FILE:tilewright_simulator>")
target_link_libraries(sim_tests PRIVATE ZLIB::ZLIB)  # recordings are packed
if(TILEWRIGHT_CUDA_INCLUDE)
  target_include_directories(sim_tests SYSTEM PRIVATE ${TILEWRIGHT_CUDA_INCLUDE})
endif()
