# Target compile_commands: compile_commands.json at the top of the tree, for clangd and other tools. It is CMake's, made
# for a build where every file is compiled alone (preset dev), and what CMake does not know: kernels and device headers.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(Python3_FOUND)
  set(editor_cuda)
  if(TILEWRIGHT_NVCC)
    set(editor_cuda --nvcc ${TILEWRIGHT_NVCC})
  endif()
  add_custom_target(compile_commands
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/compile_commands.py
            ${editor_cuda} ${CMAKE_BINARY_DIR}/compile_commands.json
    COMMENT "Writing compile_commands.json for editors" VERBATIM)
endif()
