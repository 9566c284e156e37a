# Test files are compiled several at once: half of what one takes is the same for all of them. Those that are compiled
# once for two builds (compiled_once.cmake) have units of their own. With -DTILEWRIGHT_UNITY=OFF, and with Clang, each
# file is compiled alone.
set(files_of_a_unit 8)

# SOURCES become units of files_of_a_unit files.
function(tilewright_join NAME SOURCES)
  list(SORT ${SOURCES})
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/units)
  set(units)
  set(begin 0)
  list(LENGTH ${SOURCES} all)
  while(begin LESS all)
    # As many units as are needed, all of about the same size.
    math(EXPR size "(${all} - ${begin} + ${files_of_a_unit} - 1) / ${files_of_a_unit}")
    math(EXPR size "(${all} - ${begin} + ${size} - 1) / ${size}")
    list(SUBLIST ${SOURCES} ${begin} ${size} files)
    list(LENGTH units number)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/units/${NAME}_${number}.cpp)
    add_custom_command(OUTPUT ${unit}
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/join_tests.py ${unit} ${files}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/join_tests.py ${files} VERBATIM)
    list(APPEND units ${unit})
    math(EXPR begin "${begin} + ${size}")
  endwhile()
  set(${SOURCES} ${units} PARENT_SCOPE)
endfunction()

# SOURCES become what is compiled for NAME_tests, OBJECTS those of another build that are linked.
function(tilewright_test_units NAME SOURCES OBJECTS)
  set(again ${${SOURCES}})
  tilewright_compiled_once(${NAME} again once)
  set(objects)
  if(TILEWRIGHT_TESTS_FROM)
    if(once)
      tilewright_objects_of_once(${NAME} once objects)
    endif()
    set(once)
  endif()
  if(TILEWRIGHT_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # They compare with others' headers, which define macros.
    set(witnesses ${again})
    list(FILTER witnesses INCLUDE REGEX "_witness_test\\.cpp$")
    list(FILTER again EXCLUDE REGEX "_witness_test\\.cpp$")
    tilewright_join(${NAME} again)
    list(APPEND again ${witnesses})
    tilewright_join(${NAME}_once once)
  endif()
  set(${SOURCES} ${again} ${once} PARENT_SCOPE)
  set(${OBJECTS} ${objects} PARENT_SCOPE)
endfunction()
