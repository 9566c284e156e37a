# The Python package: python/tilewright and the extension _core, put together in build/.../python so that it can be
# imported from there; the wheel takes the same parts.
function(tilewright_python)
  find_package(Python3 3.10 COMPONENTS Interpreter Development.Module)
  if(NOT Python3_Development.Module_FOUND)
    if(SKBUILD)
      message(FATAL_ERROR "The package needs the headers of Python (Debian: python3-dev)")
    endif()
    message(STATUS "No headers of Python 3.10 or newer (Debian: python3-dev): the Python package is left out")
    add_custom_target(tilewright_package)
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/python/tilewright)
  file(GLOB core_sources CONFIGURE_DEPENDS python/core/*.c)
  Python3_add_library(tilewright_core MODULE ${core_sources})
  set_target_properties(tilewright_core PROPERTIES
    PREFIX "" OUTPUT_NAME _core SUFFIX .abi3.so C_STANDARD 11 C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${folder} BUILD_RPATH_USE_ORIGIN ON
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "\$ORIGIN/lib")
  target_compile_options(tilewright_core PRIVATE -Wall -Wextra -Wshadow -Werror -Wno-missing-field-initializers)
  target_include_directories(tilewright_core PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(tilewright_core PRIVATE tilewright)

  # Files of the package as links, so that what is edited is what runs.
  file(GLOB package CONFIGURE_DEPENDS python/tilewright/*)
  file(MAKE_DIRECTORY ${folder})
  foreach(path ${package})
    get_filename_component(name ${path} NAME)
    file(CREATE_LINK ${path} ${folder}/${name} SYMBOLIC)
  endforeach()
  file(CREATE_LINK ../../lib ${folder}/lib SYMBOLIC)
  file(CREATE_LINK ../../bin ${folder}/bin SYMBOLIC)
  add_custom_target(tilewright_package
    DEPENDS tilewright_core tilewright_simulator tilewright_simulator_runtime tilewright_tool)

  # Of a wheel, which holds no links: the library under the name that _core and the tool ask for.
  set(python COMPONENT python EXCLUDE_FROM_ALL)
  install(TARGETS tilewright_core LIBRARY DESTINATION tilewright ${python})
  install(FILES $<TARGET_FILE:tilewright> RENAME $<TARGET_SONAME_FILE_NAME:tilewright>
    DESTINATION tilewright/lib ${python})
  install(TARGETS tilewright_simulator tilewright_simulator_runtime
    LIBRARY DESTINATION tilewright/lib/sim ${python})
  install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/sim/python DESTINATION tilewright/lib/sim ${python})
  install(TARGETS tilewright_tool RUNTIME DESTINATION tilewright/bin ${python})
endfunction()
