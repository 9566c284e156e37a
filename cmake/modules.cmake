# How a folder of src/ becomes a library. Sources are globbed: a new file needs no CMake edit.

add_library(tilewright_options INTERFACE)
target_compile_options(tilewright_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports overlapping and oversized copies in std::string's operator+ that cannot happen (GCC
  # bug 105651).
  target_compile_options(tilewright_options INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # `#pragma GCC ivdep`; and clang's own intrinsics for half precision are compound literals.
  target_compile_options(tilewright_options INTERFACE -Wno-unknown-pragmas -Wno-c99-extensions)
endif()
if(TILEWRIGHT_SANITIZE)
  # -Og: the simulator and the algebra are too slow to test at -O0 under a sanitizer.
  target_compile_options(tilewright_options INTERFACE
    -fsanitize=${TILEWRIGHT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  set(CMAKE_CXX_FLAGS_DEBUG "-Og -g1")
  # LeakSanitizer takes a thread's variables of a library loaded at run time for a block of glibc 2.19 if they
  # happen to lie 16 bytes into a page, reads a size that is none, and crashes. The initial-exec model has no
  # such blocks. It is not for release builds: the room it draws on is small and shared by all libraries.
  target_compile_options(tilewright_options INTERFACE -ftls-model=initial-exec)
  target_link_options(tilewright_options INTERFACE -fsanitize=${TILEWRIGHT_SANITIZE})
endif()
target_include_directories(tilewright_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)

# tilewright_module(FOLDER PUBLIC dep... PRIVATE dep...)
# The .cpp files directly in src/FOLDER become the static library tilewright_<FOLDER, / as _>; a
# folder with headers only becomes an interface library. A dependency named like a module is that
# module's library; anything else goes to target_link_libraries as it is.
function(tilewright_module FOLDER)
  cmake_parse_arguments(ARG "" "" "PUBLIC;PRIVATE" ${ARGN})
  string(REPLACE "/" "_" name ${FOLDER})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${FOLDER}/*.cpp)
  if(sources)
    add_library(tilewright_${name} STATIC ${sources})
    set(public PUBLIC)
    set(private PRIVATE)
  else()
    add_library(tilewright_${name} INTERFACE)
    set(public INTERFACE)
    set(private INTERFACE)
  endif()
  target_link_libraries(tilewright_${name} ${public} tilewright_options)
  foreach(kind public private)
    string(TOUPPER ${kind} list)
    foreach(dep ${ARG_${list}})
      string(REPLACE "/" "_" module ${dep})
      if(TARGET tilewright_${module})
        set(dep tilewright_${module})
      endif()
      target_link_libraries(tilewright_${name} ${${kind}} ${dep})
    endforeach()
  endforeach()
endfunction()
