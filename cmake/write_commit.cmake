# cmake -DSOURCE=DIR -DOUT=FILE -P write_commit.cmake
# Writes FILE, with the commit of the tree: TILEWRIGHT_COMMIT of the environment if it is set, as it must be where the
# tree is a copy whose repository does not know what was copied; else git's, with "-dirty" if anything that is built
# differs; else "unknown".
cmake_minimum_required(VERSION 3.25)
set(commit "$ENV{TILEWRIGHT_COMMIT}")
if(commit STREQUAL "")
  execute_process(COMMAND git -C ${SOURCE} rev-parse --show-prefix --short=12 HEAD
                  OUTPUT_VARIABLE text RESULT_VARIABLE failed ERROR_QUIET)
  # The first line is empty at the top of a repository; a tree inside another one has no commit of its own.
  if(NOT failed EQUAL 0 OR NOT text MATCHES "^\n([0-9a-f]+)\n$")
    set(commit unknown)
  else()
    set(commit ${CMAKE_MATCH_1})
    execute_process(COMMAND git -C ${SOURCE} status --porcelain -- CMakeLists.txt cmake include src tools
                    OUTPUT_VARIABLE changes RESULT_VARIABLE failed ERROR_QUIET)
    if(NOT failed EQUAL 0 OR NOT changes STREQUAL "")
      string(APPEND commit -dirty)
    endif()
  endif()
endif()
if(NOT commit MATCHES "^[0-9A-Za-z._-]+$")
  message(FATAL_ERROR "TILEWRIGHT_COMMIT is '${commit}'; expected letters, digits, '.', '_' and '-', "
                      "with -dirty at the end if the tree differs")
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
"// Made by cmake/write_commit.cmake.
#include \"base/source_commit.h\"
namespace tilewright {
const char kBuiltCommit[] = \"@commit@\";
}  // namespace tilewright
")
