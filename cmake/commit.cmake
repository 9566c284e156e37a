# Library tilewright_commit: the commit that the build is made of, for logs (base/source_commit.h). It is looked up at
# every build, and what needs it is linked again only if it changed.
function(tilewright_commit)
  set(out ${CMAKE_BINARY_DIR}/commit.cpp)
  add_custom_target(tilewright_find_commit
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUT=${out} -P ${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake
    BYPRODUCTS ${out} COMMENT "Looking up the commit" VERBATIM)
  add_library(tilewright_commit STATIC ${out})
  add_dependencies(tilewright_commit tilewright_find_commit)
  target_link_libraries(tilewright_commit PUBLIC tilewright_base)
endfunction()
