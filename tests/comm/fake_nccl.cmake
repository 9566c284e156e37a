# Stand-ins for NCCL: fake_nccl(FOLDER definition...) builds one as FOLDER/libnccl.so.2.
function(fake_nccl FOLDER)
  set(name fake_nccl_${FOLDER})
  add_library(${name} MODULE ${CMAKE_CURRENT_LIST_DIR}/fake_nccl.cpp)
  target_link_libraries(${name} PRIVATE tilewright_options)
  target_compile_definitions(${name} PRIVATE ${ARGN})
  set_target_properties(${name} PROPERTIES
    PREFIX "" OUTPUT_NAME libnccl SUFFIX .so.2
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fake_nccl/${FOLDER})
  add_dependencies(comm_tests ${name})
endfunction()

fake_nccl(complete)
fake_nccl(old FAKE_NCCL_VERSION=21703)
fake_nccl(lacking FAKE_NCCL_LACKS)
target_compile_definitions(comm_tests PRIVATE
  TILEWRIGHT_FAKE_NCCL="${CMAKE_CURRENT_BINARY_DIR}/fake_nccl")

# With the toolkit's headers at hand, our declarations of NCCL are compared with its own.
find_file(TILEWRIGHT_NCCL_HEADER nccl.h PATHS ${TILEWRIGHT_CUDA_INCLUDE} NO_DEFAULT_PATH)
if(TILEWRIGHT_NCCL_HEADER)
  target_include_directories(comm_tests SYSTEM PRIVATE ${TILEWRIGHT_CUDA_INCLUDE})
  target_compile_definitions(comm_tests PRIVATE TILEWRIGHT_HAS_NCCL_HEADER)
endif()
