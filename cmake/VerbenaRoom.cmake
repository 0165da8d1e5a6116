# verbena_room(NAME [DEPENDS target...] [LABELS label...])
#
# Makes the static library verbena_NAME from the .cc files of this folder and the folders below it, and the test
# program NAME_test from the *_test.cc beside them. A room with headers only becomes an INTERFACE library.
# Each test is known to ctest by its own name, with the label `unit` and those given. The label `threads` puts the
# program among those that the target thread-tests builds and CI runs under ThreadSanitizer.
function(verbena_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS;LABELS;TEST_DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  if(sources)
    add_library(verbena_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(verbena_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(verbena::${name} ALIAS verbena_${name})
  target_include_directories(verbena_${name} ${scope} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(verbena_${name} ${scope} ${ROOM_DEPENDS})
  if(tests AND NOT VERBENA_FUZZ)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE verbena_${name} ${ROOM_TEST_DEPENDS} GTest::gmock GTest::gtest_main)
    # What is tested is optimised; the tests themselves only cost the compiler time.
    target_compile_options(${name}_test PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}/ DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
    verbena_label_tests(${name}_test unit ${ROOM_LABELS})
  endif()
endfunction()

# verbena_label_tests(PROGRAM label...)
#
# gtest_discover_tests() takes one label and no more: where it finds the tests, a list falls apart. This runs behind it.
# `threads` also puts the program among those that the target thread-tests builds.
function(verbena_label_tests program)
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${program}_labels.cmake)
  file(WRITE ${script} "foreach(test IN LISTS ${program}_TESTS)
  set_tests_properties(\"\${test}\" PROPERTIES LABELS \"${ARGN}\")
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
  if("threads" IN_LIST ARGN)
    set_property(GLOBAL APPEND PROPERTY VERBENA_THREAD_TESTS ${program})
  endif()
endfunction()
