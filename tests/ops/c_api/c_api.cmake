# The C interface is used from C, out of the shared library.
set(folder ${CMAKE_CURRENT_LIST_DIR})
function(tilewright_c_program NAME INCLUDE)
  add_library(${NAME} STATIC ${ARGN})
  set_target_properties(${NAME} PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
  target_compile_options(${NAME} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR} ${INCLUDE})
  target_link_libraries(ops_tests PRIVATE ${NAME} tilewright)
endfunction()

file(GLOB checks CONFIGURE_DEPENDS ${folder}/*_check.c)
list(FILTER checks EXCLUDE REGEX "/header_check.c$")
tilewright_c_program(c_api_check ${PROJECT_SOURCE_DIR}/include ${folder}/check.c ${checks})
# Conversions are not exported.
target_sources(ops_tests PRIVATE ${PROJECT_SOURCE_DIR}/src/ops/c_api/convert/versions.cpp)

# One program compiled with other headers than today's: the previous one, and one that lacks members.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(make_c_api ${PROJECT_SOURCE_DIR}/tools/make_c_api.py)
set(older ${CMAKE_CURRENT_BINARY_DIR}/older_header)
file(GLOB description CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/c_api/*)
add_custom_command(OUTPUT ${older}/tilewright/tilewright.h
  COMMAND ${Python3_EXECUTABLE} ${make_c_api} --older ${older}/tilewright/tilewright.h
  DEPENDS ${make_c_api} ${description})
tilewright_c_program(c_api_previous ${PROJECT_SOURCE_DIR}/tests/golden/c_api/previous ${folder}/header_check.c)
tilewright_c_program(c_api_older ${older} ${folder}/header_check.c ${older}/tilewright/tilewright.h)
target_compile_definitions(c_api_previous PRIVATE CHECK_HEADER=check_previous_header)
target_compile_definitions(c_api_older PRIVATE CHECK_HEADER=check_older_header)
