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

# Most of the time that a file takes to compile goes into headers it shares with its neighbours. So all files of a
# library are compiled as one; where they are too many, or where files use the same names for their own things, those
# of a folder, of a list, or so many of all.
# Who edits a file again and again configures with -DTILEWRIGHT_UNITY=OFF. Units of the simulator are many then, as they
# are with Clang, and have the headers compiled ahead.
option(TILEWRIGHT_UNITY "Compile several files of a library at once" ON)

# tilewright_unity(TARGET [MOST]): at most so many files in a unit; 0, and without it, all.
function(tilewright_unity TARGET)
  list(APPEND ARGN 0)
  list(GET ARGN 0 most)
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ${TILEWRIGHT_UNITY} UNITY_BUILD_BATCH_SIZE ${most})
endfunction()

# The optimisation of a library in release builds that is not for speed: -O1 takes a third less time to compile than
# -O3, -O2 a tenth to a fifth.
function(tilewright_optimize TARGET LEVEL)
  if(NOT TILEWRIGHT_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${TARGET} PRIVATE ${LEVEL})
  endif()
endfunction()

# The files of a folder of SOURCES are compiled as one. A new file cannot shift others from one unit to the next.
function(tilewright_unity_by_folder TARGET)
  foreach(source ${ARGN})
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/src ${folder})
    string(REPLACE "/" "_" folder ${folder})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
  endforeach()
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ${TILEWRIGHT_UNITY} UNITY_BUILD_MODE GROUP)
endfunction()

# Files of the folders ARGN are compiled with those of FOLDER: small ones, in which no name clashes.
function(tilewright_unity_join FOLDER)
  string(REPLACE "/" "_" group ${FOLDER})
  foreach(folder ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cpp)
    set_source_files_properties(${sources} PROPERTIES UNITY_GROUP ${group})
  endforeach()
endfunction()

function(tilewright_precompiled TARGET)
  if(TILEWRIGHT_UNITY AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    return()
  endif()
  target_precompile_headers(${TARGET} PRIVATE
    <algorithm> <array> <bit> <cstdint> <functional> <map> <memory> <mutex> <optional> <set> <span> <string>
    <string_view> <unordered_map> <variant> <vector> <fmt/format.h>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # More of bug 105651 (see above), which GCC does not tell of where the header is compiled with the file.
    target_compile_options(${TARGET} PRIVATE -Wno-array-bounds -Wno-stringop-overread)
  endif()
endfunction()

# tilewright_module(FOLDER [OPTIMIZE LEVEL] PUBLIC dep... PRIVATE dep...)
# The .cpp files directly in src/FOLDER (RECURSE: and in the folders below) become the static library
# tilewright_<FOLDER, / as _>; a folder with headers only becomes an interface library. BY_FOLDER: only files
# of one folder can be compiled together. OPTIMIZE: the level of release builds, where it is not -O3.
# A dependency named like a module is that module's library; anything else goes to target_link_libraries as it is.
function(tilewright_module FOLDER)
  cmake_parse_arguments(ARG "BY_FOLDER;RECURSE" "OPTIMIZE" "PUBLIC;PRIVATE" ${ARGN})
  string(REPLACE "/" "_" name ${FOLDER})
  if(ARG_RECURSE)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${FOLDER}/*.cpp)
  else()
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${FOLDER}/*.cpp)
  endif()
  # Of the shared library, and of what has a table of kernels.
  list(FILTER sources EXCLUDE REGEX "/src/ops/c_api/|/src/device/public_kernels.cpp")
  if(sources)
    add_library(tilewright_${name} STATIC ${sources})
    if(ARG_BY_FOLDER)
      tilewright_unity_by_folder(tilewright_${name} ${sources})
    else()
      tilewright_unity(tilewright_${name})
    endif()
    if(ARG_OPTIMIZE)
      tilewright_optimize(tilewright_${name} ${ARG_OPTIMIZE})
    endif()
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
