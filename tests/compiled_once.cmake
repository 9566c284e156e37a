# Tests that are compiled once for two builds. ./test builds the test programs twice, optimised and under the
# sanitizers, and compiling tests is most of that. A test of a library's code need not be instrumented itself: what it
# tests is, and memory that either gets from the heap is watched in both. So the sanitized programs link the objects
# of the release build for the tests that tests/compiled_once.txt names.
#
# Inline functions of headers exist in both; the linker takes the first. So a program's libraries come first, and
# whole, then the tests that are compiled again: what these instantiate is instrumented. What a test compiled once
# alone instantiates is not, nor is what it has on its stack: tests of code in headers, and tests that hand arrays of
# their own to the code, are compiled again. tools/uninstrumented.py lists what a program runs without instrumentation.
set(TILEWRIGHT_TESTS_FROM "" CACHE PATH
    "Folder `tests` of another build without sanitizers, whose objects of tests are linked instead of compiled again")

# Moves those of SOURCES that are compiled once to ONCE.
function(tilewright_compiled_once NAME SOURCES ONCE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/compiled_once.txt)
  file(STRINGS compiled_once.txt patterns REGEX "^${NAME}/")
  set(once)
  foreach(pattern ${patterns})
    string(REPLACE "." "\\." pattern ${pattern})
    string(REPLACE "*" ".*" pattern ${pattern})
    set(named ${${SOURCES}})
    list(FILTER named INCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${pattern}$")
    if(NOT named)
      message(FATAL_ERROR "tests/compiled_once.txt: ${pattern} names no test that is still to be compiled")
    endif()
    list(APPEND once ${named})
    list(REMOVE_ITEM ${SOURCES} ${named})
  endforeach()
  set(${SOURCES} ${${SOURCES}} PARENT_SCOPE)
  set(${ONCE} ${once} PARENT_SCOPE)
endfunction()

# The other build's objects of the sources ONCE.
function(tilewright_objects_of_once NAME ONCE OBJECTS)
  set(list ${TILEWRIGHT_TESTS_FROM}/${NAME}_objects.txt)
  if(NOT EXISTS ${list})
    message(FATAL_ERROR "TILEWRIGHT_TESTS_FROM=${TILEWRIGHT_TESTS_FROM}: it has no ${NAME}_objects.txt. Name the "
                        "folder `tests` of a build of this version, e.g. build/release/tests.")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} built)
  set(objects ${built})
  list(FILTER objects INCLUDE REGEX "/units/${NAME}_once_[0-9]+\\.cpp\\.o$")
  if(NOT objects)  # not compiled in units
    foreach(source ${${ONCE}})
      file(RELATIVE_PATH path ${CMAKE_CURRENT_SOURCE_DIR} ${source})
      set(object ${built})
      list(FILTER object INCLUDE REGEX "/${NAME}_tests\\.dir/(\\./)?${path}\\.o$")
      if(NOT object)
        message(FATAL_ERROR "${list} has no object of ${path}")
      endif()
      list(APPEND objects ${object})
    endforeach()
  endif()
  set(${OBJECTS} ${objects} PARENT_SCOPE)
endfunction()

# Libraries of ours that TARGET links, directly or through others, into LIBRARIES.
function(tilewright_libraries_behind TARGET LIBRARIES)
  get_target_property(waiting ${TARGET} LINK_LIBRARIES)
  set(found)
  while(waiting)
    list(POP_FRONT waiting name)
    if(NOT TARGET ${name} OR NOT name MATCHES "^tilewright_" OR name IN_LIST found)
      continue()
    endif()
    list(APPEND found ${name})
    get_target_property(next ${name} INTERFACE_LINK_LIBRARIES)
    if(next)
      list(APPEND waiting ${next})
    endif()
  endwhile()
  set(static)
  foreach(name ${found})
    get_target_property(type ${name} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND static ${name})
    endif()
  endforeach()
  set(${LIBRARIES} ${static} PARENT_SCOPE)
endfunction()

# Options stand in front of a program's objects: the linker meets these libraries before everything else.
function(tilewright_link_whole_first TARGET)
  tilewright_libraries_behind(${TARGET} libraries)
  list(TRANSFORM libraries REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
  string(JOIN " " files ${files})
  target_link_options(${TARGET} PRIVATE "SHELL:-Wl,--whole-archive ${files} -Wl,--no-whole-archive")
endfunction()
