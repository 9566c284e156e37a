# Fake CUDA drivers for the tests of src/device: fake_cuda(FOLDER definition...) builds one as
# FOLDER/libcuda.so.1. They bear the SONAME of the real driver, as the simulator may.
add_library(fake_cuda_objects OBJECT
  ${CMAKE_CURRENT_LIST_DIR}/fake_driver.cpp
  ${CMAKE_CURRENT_LIST_DIR}/fake_driver_work.cpp)
target_link_libraries(fake_cuda_objects PUBLIC tilewright_options)

function(fake_cuda FOLDER)
  set(name fake_cuda_${FOLDER})
  add_library(${name} MODULE ${CMAKE_CURRENT_LIST_DIR}/fake_driver_variants.cpp)
  target_link_libraries(${name} PRIVATE fake_cuda_objects)
  target_link_options(${name} PRIVATE -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic)
  target_compile_definitions(${name} PRIVATE ${ARGN})
  set_target_properties(${name} PROPERTIES
    PREFIX "" OUTPUT_NAME libcuda SUFFIX .so.1
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fake_cuda/${FOLDER})
  add_dependencies(device_tests ${name})
endfunction()

fake_cuda(complete)
fake_cuda(simulator FAKE_SIMULATOR)
fake_cuda(old FAKE_VERSION=11080)
fake_cuda(without_tensor_maps FAKE_WITHOUT_TENSOR_MAPS)
fake_cuda(without_optional FAKE_WITHOUT_OPTIONAL FAKE_VERSION=12000)
target_compile_definitions(device_tests PRIVATE
  TILEWRIGHT_FAKE_CUDA="${CMAKE_CURRENT_BINARY_DIR}/fake_cuda")

# With the toolkit's headers at hand, our declarations of the driver are compared with them.
if(TILEWRIGHT_CUDA_INCLUDE)
  target_include_directories(device_tests SYSTEM PRIVATE ${TILEWRIGHT_CUDA_INCLUDE})
  target_compile_definitions(device_tests PRIVATE
    TILEWRIGHT_CUDA_INCLUDE="${TILEWRIGHT_CUDA_INCLUDE}")
endif()
