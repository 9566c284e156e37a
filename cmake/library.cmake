# lib/libtilewright.so: the C++ interface of include/tilewright and the C interface made of it, and what is installed.

# The library tilewright. It is made of objects that tests link as static libraries; what it shows of them is decided
# by a version script, which is written from the public headers (tools/make_exports.py).
function(tilewright_library)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/ops/c_api/*.cpp)
  file(GLOB headers CONFIGURE_DEPENDS include/tilewright/*.h)
  set(exports ${CMAKE_BINARY_DIR}/exports.map)
  set(script ${PROJECT_SOURCE_DIR}/tools/make_exports.py)
  add_custom_command(OUTPUT ${exports}
    COMMAND ${Python3_EXECUTABLE} ${script} --out ${exports} ${headers}
    DEPENDS ${script} ${headers} COMMENT "Listing what libtilewright.so exports" VERBATIM)
  # Objects of their own, so that they do not wait for the kernels, as what is compiled for the library itself does.
  add_library(tilewright_c_api OBJECT ${sources})
  target_link_libraries(tilewright_c_api PRIVATE
    tilewright_options fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
  target_compile_definitions(tilewright_c_api PRIVATE TILEWRIGHT_VERSION="${PROJECT_VERSION}")
  tilewright_unity(tilewright_c_api)
  tilewright_optimize(tilewright_c_api -O1)
  foreach(module base tokenizer layout formats arch_fragments device kernels kernel_images ops comm comm_peers reference
          model model_kernel_runner model_checkpoint model_float64 model_text c_api)
    list(APPEND objects $<TARGET_OBJECTS:tilewright_${module}>)
  endforeach()
  add_library(tilewright SHARED ${objects} ${exports})
  add_library(tilewright::tilewright ALIAS tilewright)
  target_include_directories(tilewright PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(tilewright INTERFACE cxx_std_20)
  target_link_libraries(tilewright PRIVATE
    tilewright_options tilewright_commit fmt::fmt nlohmann_json::nlohmann_json Threads::Threads ZLIB::ZLIB
    ${CMAKE_DL_LIBS})
  set_target_properties(tilewright PROPERTIES LINKER_LANGUAGE CXX)
  target_link_options(tilewright PRIVATE -Wl,-Bsymbolic-functions -Wl,--version-script=${exports})
  set_target_properties(tilewright PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINK_DEPENDS ${exports})
endfunction()

# Components: library, headers (with what CMake and pkg-config read), simulator, tool.
function(tilewright_install)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tilewright)
  install(TARGETS tilewright EXPORT tilewright-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT headers)
  install(DIRECTORY include/tilewright DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers)
  install(EXPORT tilewright-targets NAMESPACE tilewright:: DESTINATION ${package_dir} COMPONENT headers)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/tilewright-config-version.cmake
    COMPATIBILITY SameMinorVersion)
  configure_file(cmake/tilewright-config.cmake.in ${CMAKE_BINARY_DIR}/tilewright-config.cmake @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/tilewright-config.cmake ${CMAKE_BINARY_DIR}/tilewright-config-version.cmake
    DESTINATION ${package_dir} COMPONENT headers)
  # Found from the file's own place, so that an installed folder may be moved.
  file(RELATIVE_PATH TILEWRIGHT_PREFIX_FROM_PC
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  configure_file(cmake/tilewright.pc.in ${CMAKE_BINARY_DIR}/tilewright.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/tilewright.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT headers)

  # Not where the loader looks for libraries: a machine's own driver has the same name.
  set(simulator_dir ${CMAKE_INSTALL_LIBDIR}/tilewright/sim)
  install(TARGETS tilewright_simulator tilewright_simulator_runtime
    LIBRARY DESTINATION ${simulator_dir} COMPONENT simulator)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/sim/python DESTINATION ${simulator_dir} COMPONENT simulator)
  file(RELATIVE_PATH library_from_tool ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(tilewright_tool PROPERTIES INSTALL_RPATH "\$ORIGIN/${library_from_tool}")
  set_target_properties(tilewright_simulator_runtime PROPERTIES INSTALL_RPATH "\$ORIGIN")
  install(TARGETS tilewright_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
endfunction()
