# Libraries for other machines than this one: what they need besides libc is inside of them.
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
