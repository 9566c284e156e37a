# What a wheel holds besides Python, linked once more from the objects of this build as cmake/portable.cmake says, into
# build/.../wheel. Nothing is compiled again but fmt; tools/pack_wheel.py makes a wheel of it in seconds.

# `portable`, of SOURCES: linked as `target` is, but for other machines. LIBRARIES takes the place of the target's. C:
# without the C++ runtime.
function(tilewright_portable_copy portable target folder)
  cmake_parse_arguments(ARG "C" "" "SOURCES;LIBRARIES" ${ARGN})
  get_target_property(kind ${target} TYPE)
  if(kind STREQUAL "EXECUTABLE")
    add_executable(${portable} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  elseif(kind STREQUAL "MODULE_LIBRARY")
    add_library(${portable} MODULE EXCLUDE_FROM_ALL ${ARG_SOURCES})
  else()
    add_library(${portable} SHARED EXCLUDE_FROM_ALL ${ARG_SOURCES})
  endif()
  foreach(property PREFIX OUTPUT_NAME SUFFIX NO_SONAME INSTALL_RPATH LINK_DEPENDS LINK_OPTIONS)
    get_target_property(value ${target} ${property})
    if(NOT value MATCHES "NOTFOUND$")
      set_target_properties(${portable} PROPERTIES ${property} "${value}")
    endif()
  endforeach()
  if(ARG_C)
    set_target_properties(${portable} PROPERTIES LINKER_LANGUAGE C)
  else()
    set_target_properties(${portable} PROPERTIES LINKER_LANGUAGE CXX)
    # They come first, and define what a shared fmt and zlib behind them need not.
    target_link_libraries(${portable} PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,tilewright_wheel_fmt>)
    set(own -static-libstdc++ -static-libgcc -Wl,--as-needed)
  endif()
  target_link_libraries(${portable} PRIVATE ${ARG_LIBRARIES})
  target_link_options(${portable} PRIVATE ${own} -Wl,--exclude-libs,ALL -s)
  set(place ${CMAKE_BINARY_DIR}/wheel/tilewright${folder})
  set_target_properties(${portable} PROPERTIES BUILD_WITH_INSTALL_RPATH ON LIBRARY_OUTPUT_DIRECTORY ${place}
    RUNTIME_OUTPUT_DIRECTORY ${place})
endfunction()

function(tilewright_wheel)
  add_custom_target(tilewright_wheel)
  find_library(TILEWRIGHT_STATIC_ZLIB libz.a)
  if(NOT TARGET tilewright_core OR TILEWRIGHT_SANITIZE OR TILEWRIGHT_PORTABLE OR NOT TILEWRIGHT_STATIC_ZLIB OR
     NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  add_library(tilewright_wheel_fmt STATIC EXCLUDE_FROM_ALL cmake/static_fmt.cpp)
  target_include_directories(tilewright_wheel_fmt PRIVATE
    $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
  set(zlib $<LINK_LIBRARY:WHOLE_ARCHIVE,${TILEWRIGHT_STATIC_ZLIB}>)

  get_target_property(sources tilewright SOURCES)
  get_target_property(libraries tilewright LINK_LIBRARIES)
  tilewright_portable_copy(tilewright_wheel_library tilewright /lib
    SOURCES ${sources} LIBRARIES ${zlib} ${libraries})
  set(version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set_target_properties(tilewright_wheel_library PROPERTIES
    OUTPUT_NAME tilewright VERSION ${version} SOVERSION ${version})

  set(folder ${PROJECT_SOURCE_DIR}/src/sim)
  get_target_property(libraries tilewright_simulator LINK_LIBRARIES)
  tilewright_portable_copy(tilewright_wheel_simulator tilewright_simulator /lib/sim
    SOURCES $<TARGET_OBJECTS:tilewright_simulator> ${folder}/driver/aliases.ld LIBRARIES ${libraries})
  tilewright_portable_copy(tilewright_wheel_runtime tilewright_simulator_runtime /lib/sim
    SOURCES $<TARGET_OBJECTS:tilewright_simulator_runtime> ${folder}/runtime/aliases.ld
    LIBRARIES tilewright_options tilewright_wheel_simulator)
  get_target_property(libraries tilewright_tool LINK_LIBRARIES)
  list(REMOVE_ITEM libraries tilewright)
  tilewright_portable_copy(tilewright_wheel_tool tilewright_tool /bin
    SOURCES $<TARGET_OBJECTS:tilewright_main> LIBRARIES ${zlib} ${libraries} tilewright_wheel_library)
  tilewright_portable_copy(tilewright_wheel_core tilewright_core "" C
    SOURCES $<TARGET_OBJECTS:tilewright_core> LIBRARIES tilewright_wheel_library)
  tilewright_glibc_floor(libraries tilewright_wheel_library tilewright_wheel_simulator tilewright_wheel_runtime
    tilewright_wheel_core)
  tilewright_glibc_floor(program tilewright_wheel_tool)
  add_dependencies(tilewright_wheel tilewright_wheel_core tilewright_wheel_tool tilewright_wheel_runtime)
endfunction()
