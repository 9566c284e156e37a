# Libraries for other machines than this one: what they need besides libc is inside of them, and of libc they
# need what glibc 2.28 has (manylinux_2_28).
option(TILEWRIGHT_PORTABLE "Link the C++ runtime, fmt and zlib statically: for wheels" OFF)

# Debian has no static fmt; its headers hold the sources. Everything else is compiled as always.
function(tilewright_static_fmt)
  add_library(tilewright_fmt STATIC cmake/static_fmt.cpp)
  target_include_directories(tilewright_fmt PRIVATE
    $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
  set_target_properties(tilewright_fmt PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/static)
  get_target_property(configurations fmt::fmt IMPORTED_CONFIGURATIONS)
  foreach(name ${configurations})
    set_target_properties(fmt::fmt PROPERTIES
      IMPORTED_LOCATION_${name} ${CMAKE_BINARY_DIR}/static/libtilewright_fmt.a IMPORTED_SONAME_${name} "")
  endforeach()
  add_dependencies(fmt::fmt tilewright_fmt)
endfunction()

macro(tilewright_portable)
  if(TILEWRIGHT_PORTABLE)
    set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
    tilewright_static_fmt()
    add_link_options($<$<LINK_LANGUAGE:CXX>:-static-libstdc++> $<$<LINK_LANGUAGE:CXX>:-static-libgcc>
                     -Wl,--exclude-libs,ALL -s)
  endif()
endmacro()

# Older systems have these beside libc.so.6; newer ones have empty libraries of these names.
set(tilewright_floor_libraries -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -l:libm.so.6 -Wl,--as-needed)

# Asks libc for old versions of its functions (glibc_floor.c). `program`: a program or libraries.
function(tilewright_glibc_floor kind)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
  endif()
  add_library(tilewright_floor_of_${kind} OBJECT EXCLUDE_FROM_ALL cmake/glibc_floor.c)
  target_compile_options(tilewright_floor_of_${kind} PRIVATE -O2 -fno-builtin -fno-lto)
  if(kind STREQUAL "program")
    target_compile_definitions(tilewright_floor_of_program PRIVATE TILEWRIGHT_FLOOR_OF_PROGRAM)
  endif()
  foreach(target ${ARGN})
    if(TARGET ${target})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:tilewright_floor_of_${kind}>)
      target_link_libraries(${target} PRIVATE ${tilewright_floor_libraries})
    endif()
  endforeach()
endfunction()
